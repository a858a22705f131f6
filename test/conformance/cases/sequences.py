"""Sequences: flags and ids on every transport, the controls and the state that a model gets, and what is refused."""
import time

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support import attempt, case, floats, outputs, tensors
from transports import TRANSPORTS, Stream

SHOWN = ("OUTPUT0", "STARTED", "ENDED", "WAS_READY", "SEQUENCE")
STRATEGIES = ("sequence_direct", "sequence_oldest")


def ask(server, model, value, sequence_id=0, start=False, end=False, transport="HTTP", **options):
    """What a model makes of one request of a sequence, or why it makes nothing of it."""
    kind, infer = TRANSPORTS[transport]
    inputs = tensors(kind, {"INPUT0": floats(value)})
    flags = {"sequence_id": sequence_id, "sequence_start": start, "sequence_end": end}
    return attempt(lambda: outputs(infer(server, model, inputs, **flags, **options), *SHOWN))


def total(seen):
    return seen["OUTPUT0"]["data"][0] if "OUTPUT0" in seen else seen


for name in TRANSPORTS:

    @case(f"a sequence knows its signals and its sum over {name}")
    def signals(server, transport=name):
        def all_of(model, sequence_id):
            return [
                ask(server, model, 1, sequence_id, start=True, transport=transport),
                ask(server, model, 10, sequence_id, transport=transport),
                ask(server, model, 100, sequence_id, end=True, transport=transport),
                ask(server, model, 1000, sequence_id, start=True, end=True, transport=transport),
                ask(server, model, 1, sequence_id, transport=transport),
            ]

        return {model: all_of(model, 2**40 + 1) for model in STRATEGIES}


@case("sequences that take turns on one stream do not mix")
def take_turns(server):
    def sums(model):
        with Stream(server) as stream:
            for step, value in enumerate((1, 10, 100)):
                for sequence in (1, 2, 3, 4):
                    inputs = tensors(grpc_client, {"INPUT0": floats(value * sequence)})
                    stream.send(model, inputs, sequence_id=sequence, sequence_start=step == 0, sequence_end=step == 2, request_id=f"{sequence}.{step}")
            answers = [stream.next()[0] for _ in range(12)]
        return {answer.get_response().id: str(answer.as_numpy("OUTPUT0").item()) for answer in answers}

    return {model: dict(sorted(sums(model).items())) for model in STRATEGIES}


@case("requests of a sequence that come at once run in their order")
def at_once(server):
    with Stream(server) as stream:
        for value in range(20):
            inputs = tensors(grpc_client, {"INPUT0": floats(value)})
            stream.send("sequence_direct", inputs, sequence_id=20, sequence_start=value == 0, sequence_end=value == 19)
        return [str(stream.next()[0].as_numpy("OUTPUT0").item()) for _ in range(20)]


@case("a START in an open sequence begins it anew")
def anew(server):
    return {
        model: [total(ask(server, model, value, 5, start=start, end=end)) for value, start, end in ((1, True, False), (2, False, False), (4, True, False), (8, False, True))]
        for model in STRATEGIES
    }


@case("what is no part of a sequence is refused")
def refused(server):
    def all_of(model, transport):
        kind, infer = TRANSPORTS[transport]
        pair = tensors(kind, {"INPUT0": np.array([[1], [2]], np.float32)})
        return {
            "no id": ask(server, model, 1, transport=transport),
            "no id, but a START": ask(server, model, 1, start=True, transport=transport),
            "no START": ask(server, model, 1, 77, transport=transport, request_id="named"),
            "a long text": ask(server, model, 1, "x" * 129, start=True, transport=transport),
            "a batch": attempt(infer, server, model, pair, sequence_id=78, sequence_start=True),
        }

    return {f"{model} over {transport}": all_of(model, transport) for model in STRATEGIES for transport in ("HTTP", "gRPC")}


@case("correlation ids are unsigned numbers of 64 bits")
def large_ids(server):
    return {str(sequence_id): ask(server, "sequence_direct", 1, sequence_id, start=True, end=True)["SEQUENCE"] for sequence_id in (1, 2**53 + 1, 2**63 - 1)}


@case("clients see no control inputs")
def no_controls(server):
    wanted = [http_client.InferRequestedOutput("START")]
    inputs = tensors(http_client, {"INPUT0": floats(1)})
    return {
        "metadata": server.get("/v2/models/sequence_direct")["body"]["inputs"],
        "as output": attempt(server.http.infer, "sequence_direct", inputs, outputs=wanted, sequence_id=9, sequence_start=True),
    }


@case("a sequence that is idle for too long is forgotten")
def idle(server):
    began = total(ask(server, "sequence_hasty", 1, 6, start=True))
    time.sleep(1)
    return [began, total(ask(server, "sequence_hasty", 1, 6)), total(ask(server, "sequence_hasty", 4, 6, start=True))]


@case("a sequence waits for a slot no longer than it may")
def backlog(server):
    first = total(ask(server, "sequence_single", 1, 11, start=True))
    second = total(ask(server, "sequence_single", 1, 12, start=True, timeout=100_000, request_id="late"))
    third = total(ask(server, "sequence_single", 1, 12))
    last = total(ask(server, "sequence_single", 2, 11, end=True))
    return [first, second, third, last, total(ask(server, "sequence_single", 3, 12, start=True, end=True))]
