"""What the server refuses, with the status and the words that clients match."""
import numpy as np
import tritonclient.grpc as grpc_client
from support import attempt, case, floats, integers, outputs, strings, tensors
from transports import TRANSPORTS
from tritonclient.grpc import service_pb2

ROW = floats(*range(16))
# What tensors a model is wrongly given: by title, the model and its inputs.
WRONG = {
    "an unknown model": ("nobody", {"INPUT0": ROW}),
    "a model that is not loaded": ("spare", {"INPUT0": floats(1, 2)}),
    "a missing input": ("add_sub", {"INPUT0": integers(1, 2, 3, 4)}),
    "too many inputs": ("fixed", {"INPUT0": ROW, "INPUT1": ROW}),
    "an input of another name": ("fixed", {"OTHER": ROW}),
    "another datatype": ("fixed", {"INPUT0": integers(*range(16))}),
    "another shape": ("fixed", {"INPUT0": floats(1, 2, 3)}),
    "a shape without a batch": ("fixed", {"INPUT0": ROW[0]}),
    "another rank": ("fixed", {"INPUT0": ROW.reshape(1, 4, 4)}),
    "another shape of an unbatched model": ("grid", {"INPUT0": np.ones((3, 2), np.float32)}),
    "an empty batch": ("fixed", {"INPUT0": ROW[:0]}),
    "a batch that is too large": ("fixed", {"INPUT0": np.ones((9, 16), np.float32)}),
    "batches that differ": ("add_sub", {"INPUT0": integers(1, 2, 3, 4), "INPUT1": np.ones((2, 4), np.int32)}),
}

for transport in ("HTTP", "gRPC", "gRPC stream"):
    kind, infer = TRANSPORTS[transport]
    for title, (model, arrays) in WRONG.items():

        @case(f"{title} is refused over {transport}")
        def wrong(server, kind=kind, infer=infer, model=model, arrays=arrays):
            return attempt(lambda: outputs(infer(server, model, tensors(kind, arrays))))

    @case(f"an output that the model has not is refused over {transport}")
    def wrong_output(server, kind=kind, infer=infer):
        given = tensors(kind, {"INPUT0": ROW})
        return attempt(infer, server, "fixed", given, outputs=[kind.InferRequestedOutput("OTHER")])

    @case(f"refusals carry the request id over {transport}")
    def with_id(server, kind=kind, infer=infer):
        return attempt(infer, server, "fixed", tensors(kind, {"INPUT0": floats(1)}), request_id="mine")

    @case(f"an input that is given twice is refused over {transport}")
    def twice(server, kind=kind, infer=infer):
        return attempt(infer, server, "fixed", tensors(kind, {"INPUT0": ROW}) * 2)


def send_json(server, model="fixed", **changes):
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 16], "data": [0] * 16, **changes}
    return server.post(f"/v2/models/{model}/infer", {"inputs": [{k: v for k, v in tensor.items() if v is not None}]})


@case("JSON tensors with faults are refused")
def faulty_json(server):
    return {
        "no name": send_json(server, name=None), "no shape": send_json(server, shape=None), "no datatype": send_json(server, datatype=None),
        "no data": send_json(server, data=None), "too little data": send_json(server, data=[1]), "too much data": send_json(server, data=[1] * 17),
        "text for numbers": send_json(server, data=["a"] * 16), "number for name": send_json(server, name=3),
        "unknown datatype": send_json(server, datatype="FP99"), "text for shape": send_json(server, shape="16"),
        "negative dimension": send_json(server, shape=[1, -16]), "fraction in shape": send_json(server, shape=[1, 1.5]),
        "two sources": send_json(server, parameters={"binary_data_size": 64}),
        "unknown region": send_json(server, data=None, parameters={"shared_memory_region": "nowhere", "shared_memory_byte_size": 64}),
        "numbers for booleans": send_json(server, model="identity_BOOL", datatype="BOOL", shape=[1, 2], data=[1, 0]),
        "numbers for strings": send_json(server, model="identity_BYTES", datatype="BYTES", shape=[1, 2], data=[1, 0]),
    }


@case("integers beyond their datatype in JSON are answered")
def out_of_range(server):
    return {datatype: send_json(server, model=f"identity_{datatype}", datatype=datatype, shape=[1, 3], data=[256, -1, 65536])
            for datatype in ("UINT8", "INT8", "INT16", "UINT32", "INT32")}


@case("bodies that are no request are refused")
def no_request(server):
    def sent(body):
        return server.post("/v2/models/fixed/infer", body)

    bodies = {"empty": b"", "brace": b"{", "array": b"[]", "text": b'"x"', "no inputs": b"{}", "inputs null": b'{"inputs":null}',
              "inputs object": b'{"inputs":{}}', "no inputs at all": b'{"inputs":[]}', "trailing": b'{"inputs":[]} x',
              "id number": b'{"id":3,"inputs":[]}', "outputs object": b'{"inputs":[],"outputs":{}}', "not text": b"\xff\xfe"}
    return {title: sent(body) for title, body in bodies.items()}


@case("header lengths and binary sizes that do not fit are refused")
def wrong_sizes(server):
    def sent(length, size, tail=b"\0" * 64):
        head = b'{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,16],"parameters":{"binary_data_size":%d}}]}' % size
        header = {"Inference-Header-Content-Length": str(len(head) if length is None else length)} if length != "none" else {}
        return server.post("/v2/models/fixed/infer", head + tail, header)

    return {"size too large": sent(None, 68), "size too small": sent(None, 60), "more data": sent(None, 64, b"\0" * 68),
            "length beyond the body": sent(9999, 64), "length is no number": sent("abc", 64), "negative length": sent(-1, 64), "no length": sent("none", 64)["status"]}


@case("BYTES that do not hold their elements are refused")
def broken_bytes(server):
    def sent(raw):
        head = b'{"inputs":[{"name":"INPUT0","datatype":"BYTES","shape":[1,2],"parameters":{"binary_data_size":%d}}]}' % len(raw)
        return server.post("/v2/models/identity_BYTES/infer", head + raw, {"Inference-Header-Content-Length": str(len(head))})

    one = b"\1\0\0\0a"
    return {"too few": sent(one), "too many": sent(one * 3), "length cut": sent(one + b"\1\0"), "text cut": sent(one + b"\5\0\0\0b"), "nothing": sent(b"")}


def raw_grpc(server, model="fixed", raw=None, contents=None, **tensor):
    request = service_pb2.ModelInferRequest(model_name=model)
    given = request.inputs.add(**{"name": "INPUT0", "datatype": "FP32", "shape": [1, 16], **tensor})
    for field, values in (contents or {}).items():
        getattr(given.contents, field).extend(values)
    request.raw_input_contents.extend(raw or [])
    return request


def refused(server, request):
    try:
        result = grpc_client.InferResult(server.grpc._client_stub.ModelInfer(request, timeout=20))
        return outputs(result)
    except Exception as error:
        return {"error": error.details(), "status": str(error.code())}


@case("gRPC tensors with faults are refused")
def faulty_grpc(server):
    zeros = b"\0" * 64
    requests = {
        "no data": raw_grpc(server), "both kinds of data": raw_grpc(server, raw=[zeros], contents={"fp32_contents": [0] * 16}),
        "contents of another kind": raw_grpc(server, contents={"int_contents": [0] * 16}), "too few contents": raw_grpc(server, contents={"fp32_contents": [0]}),
        "too many contents": raw_grpc(server, contents={"fp32_contents": [0] * 17}), "raw too short": raw_grpc(server, raw=[zeros[:60]]),
        "raw too long": raw_grpc(server, raw=[zeros + zeros]), "too many raw": raw_grpc(server, raw=[zeros, zeros]),
        "unknown datatype": raw_grpc(server, raw=[zeros], datatype="FP99"), "negative dimension": raw_grpc(server, raw=[zeros], shape=[1, -16]),
        "half contents": raw_grpc(server, model="identity_FP16", datatype="FP16", shape=[1, 1], contents={"fp32_contents": [1]}),
    }
    return {title: refused(server, request) for title, request in requests.items()}


@case("gRPC parameters of the wrong kind are refused")
def faulty_parameters(server):
    def sent(name, **value):
        request = raw_grpc(server, raw=[b"\0" * 64])
        setattr(request.parameters[name], *next(iter(value.items())))
        return refused(server, request)

    return {"sequence_id": sent("sequence_id", bool_param=True), "sequence_start": sent("sequence_start", int64_param=1), "priority": sent("priority", string_param="x"),
            "priority negative": sent("priority", int64_param=-1), "timeout": sent("timeout", string_param="x"), "reserved": sent("triton_mine", int64_param=1)}


@case("model versions that are no numbers are refused over gRPC")
def no_version(server):
    return {version: attempt(lambda: outputs(server.grpc.infer("versions", tensors(grpc_client, {"INPUT0": floats(1, 2)}), model_version=version)))
            for version in ("x", "-1", "-2", "1x", "0", "99999999999999999999")}


@case("strings for a model of numbers are refused")
def strings_for_numbers(server):
    return attempt(server.grpc.infer, "fixed", tensors(grpc_client, {"INPUT0": strings(*["a"] * 16)}))
