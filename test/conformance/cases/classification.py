"""The classification extension: the best classes instead of the tensor."""
import numpy as np
import tritonclient.http as http_client
from support import attempt, case, outputs, tensors
from transports import TRANSPORTS

SCORES = np.array([[0.5, 2.25, -1.0, 2.0], [1e-7, 123456.75, 3.0, 3.0]], np.float32)
UNORDERED = {
    "BYTES": np.array([[b"a", b"b"]], object),
    "FP16": np.array([[1, 2]], np.float16),
    "BOOL": np.array([[True, False]]),
}

for transport in ("HTTP", "gRPC"):
    kind, infer = TRANSPORTS[transport]

    @case(f"the best classes come back with their labels over {transport}")
    def best(server, kind=kind, infer=infer):
        def classes(count):
            wanted = [kind.InferRequestedOutput("OUTPUT0", class_count=count)]
            return outputs(infer(server, "scores", tensors(kind, {"INPUT0": SCORES}), outputs=wanted))

        return [classes(1), classes(2), classes(9)]

    @case(f"integers are classified without labels over {transport}")
    def ranks(server, kind=kind, infer=infer):
        wanted = [kind.InferRequestedOutput("OUTPUT0", class_count=3)]
        given = tensors(kind, {"INPUT0": np.array([7, -3, 7, 2**31 - 1], np.int32)})
        return outputs(infer(server, "ranks", given, outputs=wanted))

    for datatype, array in UNORDERED.items():

        @case(f"{datatype} is not classified over {transport}", fatal=datatype == "BYTES")
        def unordered(server, kind=kind, infer=infer, datatype=datatype, array=array):
            wanted = [kind.InferRequestedOutput("OUTPUT0", class_count=1)]
            return attempt(lambda: outputs(infer(server, f"identity_{datatype}", tensors(kind, {"INPUT0": array}), outputs=wanted)))


@case("classes come back as JSON")
def as_json(server):
    wanted = [{"name": "OUTPUT0", "parameters": {"classification": 2}}]
    given = [{"name": "INPUT0", "datatype": "FP32", "shape": [2, 4], "data": SCORES.reshape(-1).tolist()}]
    return server.post("/v2/models/scores/infer", {"inputs": given, "outputs": wanted})


@case("a shared memory region and classification exclude each other")
def both(server):
    wanted = [{"name": "OUTPUT0", "parameters": {"classification": 2, "shared_memory_region": "r", "shared_memory_byte_size": 4}}]
    given = [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]
    return server.post("/v2/models/scores/infer", {"inputs": given, "outputs": wanted})


@case("classes may come in binary")
def in_binary(server):
    wanted = [http_client.InferRequestedOutput("OUTPUT0", class_count=1, binary_data=False)]
    return outputs(server.http.infer("scores", tensors(http_client, {"INPUT0": SCORES}), outputs=wanted))
