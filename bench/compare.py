#!/usr/bin/env python3
"""Measures running v2 servers against each other: `compare.py NAME=HTTP_PORT:GRPC_PORT:PID …`; ratios are against the first.

The load comes from h2load (Debian's nghttp2-client), one C thread that sends one real client request again and again.
Servers take turns within each round, so that whatever else the machine does hits all of them alike. A row is the median of
its rounds. Before it counts, a server must answer the real client; afterwards its own statistics must have grown by what
h2load saw succeed. Prints a Markdown table.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from statistics import median

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.grpc._utils import _get_inference_request

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
SHAPES = {"identity_fp32": [1, 16], "mlp": [1, 784], "mlp_cached": [1, 784], "conv": [1, 3, 224, 224], "preproc_py": [1, 784], "ens_py": [1, 784], "identity_py": [1, 262144]}
# Of those that do not take FP32 by the name of INPUT0.
INPUTS = {"preproc_py": ("RAW", "UINT8"), "ens_py": ("RAW", "UINT8")}
# A convolution takes so long that a short window would count a handful.
SECONDS = {"conv": 15}
GRPC_CONNECTIONS = 8


class Server:
    """A server on this machine, and what its processes have used."""

    def __init__(self, text):
        self.name, places = text.split("=")
        self.http, self.grpc, self.pid = (int(part) for part in places.split(":"))

    def processes(self):
        waiting, found = [self.pid], []
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                waiting += [int(child) for child in children.read_text().split()]
        return found

    def cpu_seconds(self):
        def ticks(pid):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        return sum(ticks(pid) for pid in self.processes()) / TICKS_A_SECOND

    def successes(self, model):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/v2/models/{model}/stats", timeout=10) as answer:
            return sum(int(found["inference_stats"]["success"].get("count", 0)) for found in json.load(answer)["model_stats"])


def prepare(server, protocol, model, folder):
    """Proves that the server answers the real client, and gives h2load's arguments for that very request."""
    kind = http_client if protocol == "http" else grpc_client
    port = server.http if protocol == "http" else server.grpc
    name, datatype = INPUTS.get(model, ("INPUT0", "FP32"))
    array = np.random.default_rng(7).random(SHAPES[model], np.float32)
    given = kind.InferInput(name, SHAPES[model], datatype)
    given.set_data_from_numpy(array if datatype == "FP32" else (array * 255).astype(np.uint8))
    kind.InferenceServerClient(f"127.0.0.1:{port}").infer(model, [given])
    if protocol == "http":
        body, head = http_client.InferenceServerClient.generate_request_body([given])
        url, headers = f"/v2/models/{model}/infer", [f"inference-header-content-length: {head}"]
    else:
        nothing = dict.fromkeys(("outputs", "timeout", "parameters"))
        request = _get_inference_request(model_name=model, model_version="", request_id="", inputs=[given], sequence_id=0, sequence_start=False, sequence_end=False, priority=0, **nothing)
        message = request.SerializeToString()
        body = b"\0" + len(message).to_bytes(4, "big") + message
        url, headers = "/inference.GRPCInferenceService/ModelInfer", ["content-type: application/grpc", "te: trailers"]
    path = Path(folder) / f"{protocol}-{model}"
    path.write_bytes(body)
    return ["--data", str(path), *(["--h1"] if protocol == "http" else []), *(f"--header={header}" for header in headers), f"http://127.0.0.1:{port}{url}"]


def measure(server, model, in_flight, seconds, request):
    """One window: inferences a second, p50 and p99 in microseconds, server CPU in microseconds an inference."""
    connections = in_flight if "--h1" in request else min(in_flight, GRPC_CONNECTIONS)
    with tempfile.NamedTemporaryFile() as log:
        load = ["h2load", "--threads=1", f"--clients={connections}", f"--max-concurrent-streams={in_flight // connections}", f"--duration={seconds}", "--warm-up-time=1", f"--log-file={log.name}"]
        before, spent = server.successes(model), server.cpu_seconds()
        said = subprocess.run([*load, *request], capture_output=True, text=True, timeout=seconds * 5 + 60, check=True).stdout
        grown, spent = server.successes(model) - before, server.cpu_seconds() - spent
        times = sorted(int(line.split(b"\t")[2]) for line in log.readlines())
    done = int(re.search(r"(\d+) succeeded", said)[1])
    if not done or grown < done * 0.98:
        raise RuntimeError(f"{server.name}: h2load saw {done} succeed, the server counted {grown}")
    rate = float(re.search(r"([\d.]+) req/s", said)[1])
    return {"rate": rate, "p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100], "cpu": spent * 1e6 / grown}


def factors():
    """How many times faster the reference is with its own ONNX backend than with its Python backend, by row."""
    lines = (Path(__file__).parent / "peer" / "factors.tsv").read_text().splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {(protocol, model, int(in_flight)): float(factor) for protocol, model, in_flight, factor in rows}


def cells(servers, rounds, factor):
    """The row of a table: each server's medians, then each ratio to the first server and the estimate."""
    made = []
    for i in range(len(servers)):
        seen = {key: median(measured[i][key] for measured in rounds) for key in rounds[0][i]}
        made += [f"{seen['rate']:,.0f}", f"{seen['p50']:,.0f}", f"{seen['p99']:,.0f}", f"{seen['cpu']:,.0f}"]
    for i in range(1, len(servers)):
        ratios = [measured[i]["rate"] / measured[0]["rate"] for measured in rounds]
        made.append(f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
        made.append(f"{median(ratios) / factor:.2f}" if factor else "")
    return made


def heading(servers):
    names = ["protocol", "model", "in flight"]
    for server in servers:
        names += [f"{server.name} infer/s", "p50 µs", "p99 µs", "CPU µs"]
    for server in servers[1:]:
        names += [f"{server.name} / {servers[0].name}", "/ its ONNX backend, estimated"]
    return names


def row(values):
    print(f"| {' | '.join(str(value) for value in values)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("servers", nargs="+", type=Server, metavar="NAME=HTTP:GRPC:PID")
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--protocols", default="http,grpc")
    parser.add_argument("--in-flight", default="1,16,64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="length of a window; conv takes 15")
    options = parser.parse_args()
    known = factors() if options.servers[0].name == "triton" else {}
    names = heading(options.servers)
    row(names)
    row(["---"] * len(names))
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models.split(","):
            for protocol in options.protocols.split(","):
                requests = [prepare(server, protocol, model, folder) for server in options.servers]
                for in_flight in map(int, options.in_flight.split(",")):
                    seconds = max(options.seconds, SECONDS.get(model, 0))
                    rounds = [[measure(server, model, in_flight, seconds, request) for server, request in zip(options.servers, requests)] for _ in range(options.rounds)]
                    row([protocol, model, in_flight, *cells(options.servers, rounds, known.get((protocol, model, in_flight)))])


if __name__ == "__main__":
    sys.exit(main())
