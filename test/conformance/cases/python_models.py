"""Models in Python: every part of their contract with the server, by models that say what they saw."""
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support import attempt, case, floats, outputs, shown, tensors
from transports import Stream


def ask(server, model, mode, **inputs):
    """What a model answers to the mode that it is asked for."""
    arrays = {"MODE": np.array([mode], dtype=object), **inputs}
    return attempt(server.grpc.infer, model, tensors(grpc_client, arrays))


def said(answer, name="ANSWER"):
    """The JSON in an output, or the error."""
    return without_paths(answer) if isinstance(answer, dict) else json.loads(answer.as_numpy(name).reshape(-1)[0])


def without_paths(value):
    """The reference names the file of a model by its whole path, and tells where in its own files an error was raised."""
    text = re.sub(r"/\S*/(\d+/\w+\.py)", r"\1", json.dumps(value))
    return json.loads(re.sub(r"  (?:<frozen importlib|/\S*/triton_python_backend_utils\.py)[^)]*\)[^\\]*\\n", "", text))


@case("a Python model is given its config and its place")
def args(server):
    return said(server.grpc.infer("py_args", tensors(grpc_client, {"ASKED": np.array([[True]])})))


@case("a Python model sees everything of a request over gRPC")
def seen_over_grpc(server):
    given = {"NUMBERS": np.array([1.5, -2], np.float32), "TEXTS": np.array(["a", "h\u00e9"], dtype=object)}
    options = {"request_id": "r1", "timeout": 7_000_000, "parameters": {"whole": 3, "text": "x", "flag": True, "half": 0.5}}
    wanted = [grpc_client.InferRequestedOutput("ANSWER")]
    sequence = {"sequence_id": 2**62 + 5, "sequence_start": True, "sequence_end": True}
    return [
        said(server.grpc.infer("py_request", tensors(grpc_client, given), outputs=wanted, **options)),
        said(server.grpc.infer("py_request", tensors(grpc_client, {"NUMBERS": given["NUMBERS"]}), **sequence)),
        said(server.grpc.infer("py_request", tensors(grpc_client, {"TEXTS": given["TEXTS"]}), sequence_id="a text")),
    ]


@case("a Python model sees everything of a request over HTTP")
def seen_over_http(server):
    body = {
        "id": "r2", "parameters": {"whole": -3, "text": "x", "flag": False, "half": 0.5, "sequence_id": 7, "timeout": 9_000_000},
        "inputs": [{"name": "NUMBERS", "datatype": "FP32", "shape": [2], "data": [1, 2]}],
    }
    answer = server.post("/v2/models/py_request/infer", body)["body"]
    return [[output["name"] for output in answer["outputs"]], json.loads(answer["outputs"][-1]["data"][0])]


ERRORS = (
    "UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED ALREADY_EXISTS CANCELLED".split()
    + ["default code", "raise", "raise nothing", "raise deep", "raise model exception", "divide", "too few", "too many", "tuple", "no response", "no tensor", "empty name"]
)


@case("errors of Python models reach the client over gRPC")
def errors_over_grpc(server):
    return {mode: without_paths(ask(server, "py_errors", mode)) for mode in ERRORS}


@case("errors of Python models reach the client over HTTP")
def errors_over_http(server):
    def body(mode):
        return {"inputs": [{"name": "MODE", "datatype": "BYTES", "shape": [1], "data": [mode]}]}

    return {mode: without_paths(server.post("/v2/models/py_errors/infer", body(mode))) for mode in ERRORS}


@case("outputs of a Python model that nobody asked for are left out")
def other_outputs(server):
    def names(answer):
        return [output.name for output in answer.get_response().outputs] if not isinstance(answer, dict) else answer

    return {mode: names(ask(server, "py_errors", mode)) for mode in ("other output", "no output", "fine")}


@case("requests of one batch come to a Python model as a list")
def batch(server):
    def infer(rows):
        return attempt(server.grpc.infer, "py_batch", tensors(grpc_client, {"INPUT0": np.array(rows, np.float32)}))

    def seen(answer):
        return without_paths(answer) if isinstance(answer, dict) else outputs(answer, "BATCH", "OUTPUT0")

    def together(*batches):
        with ThreadPoolExecutor(len(batches)) as pool:
            return [seen(answer) for answer in pool.map(infer, batches)]

    return [
        together([[1, 2]], [[3, 4], [5, 6], [7, 8]]),
        together([[1, 2]], [[-1, 4]], [[5, 6], [7, 8]]),
        together([[1, 2]], [[float("nan"), 4]], [[5, 6], [7, 8]]),
    ]


TYPES = (
    ["bytes", "text", "objects", "fixed", "grid of texts", "no texts", "bool", "int8", "uint64", "int64", "fp64", "fp16", "scalar", "empty", "columns"]
    + ["every second", "grid", "BF16 as numpy", "dlpack of texts"]
)


@case("a Python model may answer with any array")
def types(server):
    def seen(answer):
        if isinstance(answer, dict):
            return {**without_paths(answer), "error": re.sub(r"\s+", " ", without_paths(answer)["error"])}
        (output,) = answer.get_response().outputs
        return [output.datatype, list(output.shape), shown(answer.as_numpy("OUT"))]

    bf16 = np.array([1, 2.5], ml_dtypes.bfloat16)
    texts = np.array([["a", ""], ["h\u00e9", "b"], ["c", "d"]], dtype=object)
    return {
        **{mode: seen(ask(server, "py_types", mode, **({"BF16": bf16} if "BF16" in mode else {}))) for mode in TYPES},
        "TEXTS": seen(ask(server, "py_types", "TEXTS", TEXTS=texts)),
        "BF16": seen(ask(server, "py_types", "BF16", BF16=bf16)),
    }


def stream(server, model, arrays, count, **options):
    """So many answers to one request on a stream."""
    def seen(answer):
        result, error = answer
        if error is not None:
            return without_paths({"error": error.message(), "status": error.status()})
        parameters = {name: str(value).strip() for name, value in result.get_response().parameters.items()}
        return [outputs(result, *[output.name for output in result.get_response().outputs]) or "empty", parameters]

    with Stream(server) as calls:
        calls.send(model, tensors(grpc_client, arrays), enable_empty_final_response=True, **options)
        return [seen(calls.next()) for _ in range(count)]


ORDERS = {
    "three": ({"count": 3}, 4),
    "three, the last one final": ({"count": 3, "final": "with the last"}, 3),
    "none": ({"count": 0}, 1),
    "from a thread": ({"count": 2, "how": "in a thread"}, 3),
    "an error": ({"count": 1, "error": True}, 2),
    "raises": ({"count": 0, "how": "raises"}, 2),
    "raises first": ({"count": 0, "how": "raises first"}, 1),
    "returns": ({"count": 0, "how": "returns"}, 1),
    "flags": ({"count": 0, "how": "flags"}, 1),
    "after the end": ({"count": 1, "after": True}, 2),
}


@case("a decoupled Python model answers as often as it likes")
def decoupled(server):
    return {name: stream(server, "py_decoupled", {"ORDER": np.array([json.dumps(order)], dtype=object)}, count) for name, (order, count) in ORDERS.items()}


@case("a Python model gets a request again until it answers")
def iterative(server):
    def turns(count, **options):
        arrays = {"TURNS": np.array([[count]], np.int32)}
        return said(attempt(server.grpc.infer, "py_iterative", tensors(grpc_client, arrays), **options))

    with ThreadPoolExecutor() as threads:
        together = list(threads.map(lambda count: turns(count, request_id=str(count)), [5, 1, 3]))
    return [
        turns(1),
        turns(3, request_id="three", timeout=9_000_000),
        turns(2, sequence_id=70, sequence_start=True),
        turns(1, sequence_id=71),
        turns(-1)["error"].split(" found type")[0],
        together,
    ]


@case("a decoupled Python model gets a request again, and answers each time")
def iterative_stream(server):
    return stream(server, "py_iterative_stream", {"TURNS": np.array([[3]], np.int32)}, 4)


@case("an ensemble answers as often as a decoupled Python model in it")
def decoupled_chain(server):
    def numbers(count, answers):
        order = {"ORDER": np.array([json.dumps({"count": count})], dtype=object)}
        # Which answer is the last one the reference knows only when it is late with it.
        found = stream(server, "py_chain", order, answers)
        return [one if isinstance(one, dict) else [one[0], {**one[1], "triton_final_response": ""}] for one in found]

    policy = server.get("/v2/models/py_chain/config")["body"]["model_transaction_policy"]
    return [policy, numbers(2, 2), numbers(0, 1), numbers(5, 4)]


@case("a decoupled Python model is refused where there is one answer")
def decoupled_refused(server):
    arrays = {"ORDER": np.array(['{"count": 1}'], dtype=object)}
    body = {"inputs": [{"name": "ORDER", "datatype": "BYTES", "shape": [1], "data": ['{"count": 1}']}]}
    return [attempt(server.grpc.infer, "py_decoupled", tensors(grpc_client, arrays)), server.post("/v2/models/py_decoupled/infer", body)]


@case("many requests of a decoupled Python model are answered at the same time")
def decoupled_together(server):
    began = time.monotonic()
    with Stream(server) as calls:
        for i in range(8):
            calls.send("py_async", tensors(grpc_client, {"SECONDS": np.array([0.5 + i / 100], np.float32)}), request_id=str(i))
        ids = [calls.next()[0].get_response().id for _ in range(8)]
    return {"ids": sorted(ids), "in time": time.monotonic() - began < 2.5}


@case("a Python model learns that its request is cancelled")
def cancelled(server):
    def ask_for(server):
        (answer,) = stream(server, "py_cancel", {"ASK": np.array([True])}, 1)
        return int(answer[0]["SEEN"]["data"][0])

    before = ask_for(server)
    with Stream(server) as calls:
        calls.send("py_cancel", tensors(grpc_client, {"ASK": np.array([False])}))
        calls.next()
        calls.client.stop_stream(cancel_requests=True)
    until = time.monotonic() + 5
    while ask_for(server) == before and time.monotonic() < until:
        time.sleep(0.02)
    return ask_for(server) - before


@case("a Python model may send its only answer by the sender")
def sender(server):
    def seen(answer):
        return without_paths(answer) if isinstance(answer, dict) else answer.as_numpy("ANSWER")[0].decode()

    return {mode: seen(ask(server, "py_sender", mode)) for mode in ("at once", "thread", "apart", "twice", "what was refused", "only the end", "both")}


for mode in "sync together errors many again many_together passed_on mistakes large ensemble".split():

    @case(f"a Python model calls others: {mode.replace('_', ' ')}")
    def calls(server, mode=mode):
        return said(ask(server, "py_calls", mode))


@case("a Python model loads and unloads others")
def control(server):
    def do(mode, model="spare_py"):
        answer = said(ask(server, "py_control", mode, MODEL=np.array([model], dtype=object)))
        # This server also says why.
        return answer.partition(": model not found")[0] if isinstance(answer, str) else answer

    def gone():
        until = time.monotonic() + 5
        while do("ready")[0] and time.monotonic() < until:
            time.sleep(0.02)
        return do("ready")

    return [do("ready"), do("load"), do("ready"), do("unload"), gone(), do("load", "nobody"), do("ready", "nobody"), do("bad files")]


@case("metrics of a Python model refuse what they cannot do")
def metrics_refuse(server):
    return [said(ask(server, "py_metrics", "use")), said(ask(server, "py_metrics", "refused")), said(ask(server, "py_metrics", "again"))]


def settled(config):
    """What the model has a say in."""
    return {key: config.get(key) for key in ("max_batch_size", "input", "output", "dynamic_batching", "model_transaction_policy", "backend", "default_model_filename")}


@case("a Python model completes its config")
def auto_complete(server):
    seen = outputs(server.http.infer("py_auto", tensors(http_client, {"INPUT0": floats(1, 2, 3, 4)})))
    configs = [settled(server.http.get_model_config(name)) for name in ("py_auto", "py_auto_bare")]
    return [seen, *configs, stream(server, "py_auto_bare", {"INPUT0": np.array([[1, 2]], np.int32)}, 1)]


BROKEN = "import syntax class initialize auto_returns auto_batch auto_type auto_dims auto_property auto_missing auto_policy".split()


@case("Python models that cannot be loaded say why")
def broken(server):
    seen = {name: without_paths(attempt(server.http.load_model, f"broken_py_{name}")) for name in BROKEN}
    for name in BROKEN:
        server.http.unload_model(f"broken_py_{name}")
    return seen


@case("a Python model without execute loads, and fails when it is asked")
def nothing(server):
    server.http.load_model("broken_py_nothing")
    seen = without_paths(attempt(server.http.infer, "broken_py_nothing", tensors(http_client, {"INPUT0": np.zeros(4, np.float32)})))
    server.http.unload_model("broken_py_nothing")
    return seen
