"""Requests that wait: timeouts, cancellation and full queues. The models hold a lone request back for 0.4 seconds."""
import queue
import socket
import time

import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support import attempt, case, floats, outputs, tensors
from transports import TRANSPORTS

ROW = {"INPUT0": floats(1, 2)}


def failures(server, model):
    return server.http.get_inference_statistics(model)["model_stats"][0]["inference_stats"]["fail"]["count"]


def settled(server, model):
    """The failures once they no longer rise: a call that was cancelled is counted when whoever had it has noticed."""
    found = failures(server, model)
    for _ in range(20):
        time.sleep(0.6)
        before, found = found, failures(server, model)
        if found == before:
            break
    return found


for transport in ("HTTP", "gRPC", "gRPC stream"):
    kind, infer = TRANSPORTS[transport]

    @case(f"a request leaves the queue when its timeout has passed over {transport}")
    def timeout(server, kind=kind, infer=infer):
        before, began = settled(server, "waiting"), time.monotonic()
        answer = attempt(infer, server, "waiting", tensors(kind, ROW), timeout=20_000)
        return {"answer": answer, "in time": time.monotonic() - began < 0.35, "failures": failures(server, "waiting") - before}

    @case(f"a request with time enough is answered over {transport}")
    def enough(server, kind=kind, infer=infer):
        return outputs(infer(server, "waiting", tensors(kind, ROW), timeout=20_000_000))


@case("the client's own timeout ends a call over gRPC")
def client_timeout(server):
    answer = attempt(server.grpc.infer, "waiting", tensors(grpc_client, ROW), client_timeout=0.05)
    # Client and server watch the same deadline; whoever is first writes "exceeded" its own way.
    return {**answer, "error": answer["error"].lower()}


@case("the client's own timeout ends a call over HTTP")
def network_timeout(server):
    client = http_client.InferenceServerClient(server.http_address, network_timeout=0.05)
    try:
        return outputs(client.infer("waiting", tensors(http_client, ROW)))
    except Exception as error:
        return type(error).__name__


@case("a cancelled call is no more than a failure in the statistics")
def cancelled(server):
    before, answers = settled(server, "waiting"), queue.Queue()
    call = server.grpc.async_infer("waiting", tensors(grpc_client, ROW), lambda result, error: answers.put(error))
    time.sleep(0.1)
    call.cancel()
    error = answers.get(timeout=20)
    time.sleep(0.6)
    return {"error": error.message(), "status": error.status(), "failures": failures(server, "waiting") - before}


@case("a client that hangs up takes its request along")
def hangs_up(server):
    before = settled(server, "waiting")
    host, port = server.http_address.split(":")
    body = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":[1,2]}]}'
    head = f"POST /v2/models/waiting/infer HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        time.sleep(0.1)
    time.sleep(0.6)
    return failures(server, "waiting") - before


@case("a full queue refuses the next request")
def full(server):
    answers = queue.Queue()
    for _ in range(3):
        server.grpc.async_infer("crowded", tensors(grpc_client, ROW), lambda result, error: answers.put(error and error.message()))
        time.sleep(0.05)
    return sorted(str(answers.get(timeout=20)) for _ in range(3))
