"""Content codings of requests and responses."""
import gzip
import zlib

import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support import attempt, case, floats, outputs, tensors

JSON_FIXED = [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 16], "data": [0.5] * 16}]


def compressed(server, algorithm_in, algorithm_out):
    given = tensors(http_client, {"INPUT0": floats(*range(2000))})
    result = server.http.infer("identity_FP32", given, request_compression_algorithm=algorithm_in, response_compression_algorithm=algorithm_out)
    return outputs(result)


for algorithm in ("gzip", "deflate"):

    @case(f"requests may be compressed with {algorithm}")
    def requests(server, algorithm=algorithm):
        return compressed(server, algorithm, None)

    @case(f"responses may be compressed with {algorithm}")
    def responses(server, algorithm=algorithm):
        return compressed(server, None, algorithm)

    @case(f"both ways may be compressed with {algorithm}")
    def both_ways(server, algorithm=algorithm):
        return compressed(server, algorithm, algorithm)

    @case(f"gRPC messages may be compressed with {algorithm}")
    def over_grpc(server, algorithm=algorithm):
        given = tensors(grpc_client, {"INPUT0": floats(*range(2000))})
        return outputs(server.grpc.infer("identity_FP32", given, compression_algorithm=algorithm))


@case("the response coding is negotiated by weight")
def negotiated(server):
    def coding(accept):
        answer = server.call("POST", "/v2/models/fixed/infer", {"inputs": JSON_FIXED}, {"Accept-Encoding": accept})
        return [answer.status, answer.headers.get("content-encoding")]

    accepted = ("gzip", "deflate", "identity", "br", "gzip;q=0.5, deflate;q=0.8", "deflate, gzip", "gzip, deflate", "*", "gzip;q=0", "identity;q=0.1, gzip;q=0.2")
    return {accept: coding(accept) for accept in accepted}


@case("a compressed response says its coding and decodes to the same JSON")
def decodes(server):
    codings = {"gzip": gzip.decompress, "deflate": zlib.decompress}
    plain = server.call("POST", "/v2/models/fixed/infer", {"inputs": JSON_FIXED}).body
    answers = {name: server.call("POST", "/v2/models/fixed/infer", {"inputs": JSON_FIXED}, {"Accept-Encoding": name}) for name in codings}
    return {name: [answer.headers["content-encoding"], codings[name](answer.body) == plain] for name, answer in answers.items()}


@case("request codings that nobody knows are refused")
def unknown(server):
    answer = server.call("POST", "/v2/models/fixed/infer", {"inputs": JSON_FIXED}, {"Content-Encoding": "br"})
    return answer.seen("accept-encoding")


@case("generate takes no content coding")
def generate(server):
    return attempt(server.post, "/v2/models/word/generate", {"INPUT0": "x"}, {"Content-Encoding": "gzip"})


@case("a body that is not what its coding says is refused")
def damaged(server):
    return server.post("/v2/models/fixed/infer", b"this is no gzip", {"Content-Encoding": "gzip"})["status"]
