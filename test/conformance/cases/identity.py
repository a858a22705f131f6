"""Every datatype goes in and comes out unchanged, by every transport and every encoding."""
import ml_dtypes
import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support import attempt, case, outputs, shown, strings, tensors
from transports import TRANSPORTS
from tritonclient.grpc import service_pb2

FLOATS = [[0.0, -1.5, 2.0], [0.25, 1024.0, -0.0]]
VALUES = {
    "BOOL": np.array([[True, False, True], [False, False, True]]),
    **{f"UINT{bits}": np.array([[0, 1, 2], [3, 4, 2**bits - 1]], f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.array([[0, -1, 2], [-3, 1 - 2 ** (bits - 1), 2 ** (bits - 1) - 1]], f"int{bits}") for bits in (8, 16, 32, 64)},
    "FP16": np.array(FLOATS, np.float16),
    "FP32": np.array(FLOATS, np.float32),
    "FP64": np.array(FLOATS, np.float64),
    "BF16": np.array(FLOATS, ml_dtypes.bfloat16),
    "BYTES": np.array([[b"tide", b"", "Gezeiten – 潮".encode()], [b"a b", b'"quoted"', b"\\ back"]], object),
}
# The field of InferTensorContents that carries each datatype; the half-precision ones have none.
CONTENTS = {"BOOL": "bool", "UINT64": "uint64", "INT64": "int64", "FP32": "fp32", "FP64": "fp64", "BYTES": "bytes"}


def contents_field(datatype):
    return CONTENTS.get(datatype, "uint" if datatype.startswith("UINT") else "int") + "_contents"


def send(server, transport, datatype, array):
    kind, infer = TRANSPORTS[transport]
    return outputs(infer(server, f"identity_{datatype}", tensors(kind, {"INPUT0": array}, {"INPUT0": datatype})))


def by_json(server, datatype, array):
    wanted = [http_client.InferRequestedOutput("OUTPUT0", binary_data=False)]
    given = tensors(http_client, {"INPUT0": array}, {"INPUT0": datatype}, binary=False)
    return outputs(server.http.infer(f"identity_{datatype}", given, outputs=wanted))


def by_contents(server, datatype, array):
    request = service_pb2.ModelInferRequest(model_name=f"identity_{datatype}")
    tensor = request.inputs.add(name="INPUT0", datatype=datatype, shape=array.shape)
    getattr(tensor.contents, contents_field(datatype)).extend(array.reshape(-1).tolist())
    return outputs(grpc_client.InferResult(server.grpc._client_stub.ModelInfer(request, timeout=20)))


for datatype, array in VALUES.items():
    for transport in TRANSPORTS:

        @case(f"{datatype} is unchanged over {transport}")
        def over(server, transport=transport, datatype=datatype, array=array):
            return send(server, transport, datatype, array)

    if datatype not in ("FP16", "BF16"):

        @case(f"{datatype} is unchanged as JSON")
        def as_json(server, datatype=datatype, array=array):
            return by_json(server, datatype, array)

        @case(f"{datatype} is unchanged as typed gRPC contents")
        def as_contents(server, datatype=datatype, array=array):
            return by_contents(server, datatype, array)


for transport in ("HTTP", "gRPC"):

    @case(f"a tensor without elements is unchanged over {transport}")
    def without_elements(server, transport=transport):
        return [send(server, transport, datatype, VALUES[datatype][:, :0]) for datatype in ("FP32", "INT64", "BYTES")]

    @case(f"a tensor of 8 MiB is unchanged over {transport}")
    def large(server, transport=transport):
        return send(server, transport, "FP64", np.arange(2**20, dtype=np.float64).reshape(1, -1))

    @case(f"20,000 strings are unchanged over {transport}")
    def many_strings(server, transport=transport):
        kind, infer = TRANSPORTS[transport]
        given = strings(*(f"string {i}" for i in range(20_000)))
        result = infer(server, "identity_BYTES", tensors(kind, {"INPUT0": given}))
        return bool((result.as_numpy("OUTPUT0") == given).all())

    @case(f"a scalar of every row is unchanged over {transport}")
    def scalars(server, transport=transport):
        kind, infer = TRANSPORTS[transport]
        return outputs(infer(server, "scalar", tensors(kind, {"INPUT0": np.array([[1], [2], [3]], np.float32)})))

    @case(f"strings that are not UTF-8 are answered over {transport}")
    def not_text(server, transport=transport):
        return attempt(send, server, transport, "BYTES", strings(b"\xff\xfe", b"a\x00b"))


@case("a string of 1 MiB is unchanged as JSON")
def long_string(server):
    wanted = [http_client.InferRequestedOutput("OUTPUT0", binary_data=False)]
    text = "tide" * 2**18
    result = server.http.infer("identity_BYTES", tensors(http_client, {"INPUT0": strings(text)}, binary=False), outputs=wanted)
    return result.as_numpy("OUTPUT0").tolist() == [[text]]


@case("JSON data may be flat or nested")
def flat_or_nested(server):
    def sent(data):
        tensor = {"name": "INPUT0", "datatype": "INT32", "shape": [2, 2], "data": data}
        return server.post("/v2/models/identity_INT32/infer", {"inputs": [tensor]})

    return [sent([1, 2, 3, 4]), sent([[1, 2], [3, 4]])]


@case("floats come back as JSON numbers")
def printed(server):
    data = [0.1, 1e-7, 1e21, 16777216, -0.5, 3.4028234663852886e38]
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, len(data)], "data": data}
    return server.post("/v2/models/identity_FP32/infer", {"inputs": [tensor]})


@case("64-bit integers come back from JSON exactly")
def exact(server):
    body = b'{"inputs":[{"name":"INPUT0","datatype":"INT64","shape":[1,2],"data":[9007199254740993,-9223372036854775808]}]}'
    return server.call("POST", "/v2/models/identity_INT64/infer", body).body.decode().split('"data":')[1]


@case("values that are not finite are answered as JSON")
def not_finite(server):
    given = np.array([[np.nan, np.inf, -np.inf]], np.float32)
    wanted = [http_client.InferRequestedOutput("OUTPUT0", binary_data=False)]
    body, head = http_client.InferenceServerClient.generate_request_body(tensors(http_client, {"INPUT0": given}), outputs=wanted)
    answer = server.call("POST", "/v2/models/identity_FP32/infer", bytes(body), {"Inference-Header-Content-Length": str(head)})
    return {"status": answer.status, "body": answer.body.decode()}


@case("half-precision numbers in JSON are answered")
def half_json(server):
    tensor = {"name": "INPUT0", "datatype": "FP16", "shape": [1, 2], "data": [1.5, -2]}
    return server.post("/v2/models/identity_FP16/infer", {"inputs": [tensor]})


@case("half-precision outputs in JSON are answered")
def half_output(server):
    wanted = [http_client.InferRequestedOutput("OUTPUT0", binary_data=False)]
    given = tensors(http_client, {"INPUT0": np.array([[1.5, -2]], np.float16)})
    return attempt(lambda: shown(server.http.infer("identity_FP16", given, outputs=wanted).as_numpy("OUTPUT0")))
