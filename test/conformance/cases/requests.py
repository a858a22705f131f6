"""What a request may ask for beside its tensors: ids, outputs, encodings, parameters, versions."""
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support import attempt, case, floats, integers, outputs, tensors
from transports import TRANSPORTS

PAIR = {"INPUT0": integers(1, 2, 3, 4), "INPUT1": integers(4, 3, 2, 1)}
JSON_PAIR = [{"name": name, "datatype": "INT32", "shape": [1, 4], "data": array.reshape(-1).tolist()} for name, array in PAIR.items()]

for transport, (kind, infer) in TRANSPORTS.items():

    @case(f"two inputs give two outputs over {transport}")
    def two(server, kind=kind, infer=infer):
        return outputs(infer(server, "add_sub", tensors(kind, PAIR)), "OUTPUT0", "OUTPUT1")

    @case(f"the request id comes back over {transport}")
    def request_id(server, kind=kind, infer=infer):
        answer = infer(server, "add_sub", tensors(kind, PAIR), request_id="the 7th wave").get_response()
        return answer["id"] if kind is http_client else answer.id

    @case(f"only requested outputs come back over {transport}")
    def requested(server, kind=kind, infer=infer):
        result = infer(server, "add_sub", tensors(kind, PAIR), outputs=[kind.InferRequestedOutput("OUTPUT1")])
        return outputs(result, "OUTPUT0", "OUTPUT1")

    @case(f"the version is chosen over {transport}")
    def version(server, kind=kind, infer=infer):
        def answer(model, version):
            result = infer(server, model, tensors(kind, {"INPUT0": floats(1, 2)}), model_version=version)
            response = result.get_response()
            ran = response["model_version"] if kind is http_client else response.model_version
            return {**outputs(result), "version": ran}

        asked = (("versions", ""), ("versions", "1"), ("versions", "2"), ("latest", ""), ("latest", "2"), ("latest", "1"), ("versions", "9"))
        return {f"{model} {version}": attempt(answer, model, version) for model, version in asked}


@case("the order of requested outputs does not matter")
def output_order(server):
    wanted = [{"name": "OUTPUT1"}, {"name": "OUTPUT0"}]
    return server.post("/v2/models/add_sub/infer", {"inputs": JSON_PAIR, "outputs": wanted})


@case("each output chooses its own encoding")
def mixed(server):
    wanted = [http_client.InferRequestedOutput("OUTPUT0", binary_data=False), http_client.InferRequestedOutput("OUTPUT1", binary_data=True)]
    result = server.http.infer("add_sub", tensors(http_client, PAIR), outputs=wanted)
    return {"response": result.get_response(), **outputs(result, "OUTPUT0", "OUTPUT1")}


@case("binary_data_output asks for all outputs in binary")
def all_binary(server):
    body = {"inputs": JSON_PAIR, "parameters": {"binary_data_output": True}}
    answer = server.call("POST", "/v2/models/add_sub/infer", body)
    head = int(answer.headers["inference-header-content-length"])
    return {"head": answer.body[:head].decode(), "tail": answer.body[head:].hex(), "type": answer.headers["content-type"]}


@case("JSON without binary answers as JSON")
def plain(server):
    answer = server.call("POST", "/v2/models/add_sub/infer", {"inputs": JSON_PAIR})
    return answer.seen("content-type", "inference-header-content-length")


@case("a raw body is the only input")
def raw_body(server):
    def sent(model, body, **headers):
        answer = server.call("POST", f"/v2/models/{model}/infer", body, {"Inference-Header-Content-Length": "0"})
        head = int(answer.headers.get("inference-header-content-length", len(answer.body)))
        return {"status": answer.status, "head": answer.body[:head].decode(), "tail": answer.body[head:].hex()}

    four = floats(1, 2, 3, 4).tobytes()
    return {"fixed": sent("fixed", four * 4), "variable": sent("identity_FP32", four), "word": sent("word", b"any bytes"),
            "without batch": sent("grid", four + four[:8]), "two variable dimensions": sent("square", four),
            "two inputs": sent("add_sub", four), "wrong size": sent("fixed", four), "bytes": sent("identity_BYTES", b"any bytes")}


@case("custom parameters are accepted over HTTP")
def parameters(server):
    def sent(**parameters):
        return server.post("/v2/models/add_sub/infer", {"inputs": JSON_PAIR, "parameters": parameters})["status"]

    return [sent(text="x", number=3, yes=True), sent(fraction=0.5), sent(nothing=None), sent(array=[1])]


@case("parameters of the wrong kind are refused over HTTP")
def wrong_parameters(server):
    def sent(**parameters):
        return server.post("/v2/models/add_sub/infer", {"inputs": JSON_PAIR, "parameters": parameters})

    return {name: sent(**given) for name, given in {
        "reserved": {"triton_mine": 1}, "array": {"list": [1]}, "priority": {"priority": "high"}, "timeout": {"timeout": "1s"},
        "sequence_start": {"sequence_id": 1, "sequence_start": 1}, "binary_data_output": {"binary_data_output": "yes"}}.items()}


@case("custom parameters are accepted over gRPC")
def grpc_parameters(server):
    given = {"text": "x", "number": 3, "yes": True}
    return outputs(server.grpc.infer("add_sub", tensors(grpc_client, PAIR), parameters=given))


@case("request headers may come in any case")
def header_case(server):
    body, head = http_client.InferenceServerClient.generate_request_body(tensors(http_client, PAIR))
    answer = server.call("POST", "/v2/models/add_sub/infer", bytes(body), {"INFERENCE-header-content-length": str(head)})
    return answer.seen()
