"""Whether server and models say that they live and are ready."""
import grpc
from support import attempt, case


@case("server and models are ready over HTTP")
def over_http(server):
    client = server.http
    return [client.is_server_live(), client.is_server_ready(), client.is_model_ready("fixed"), client.is_model_ready("versions", "2"),
            client.is_model_ready("versions", "3"), client.is_model_ready("spare"), client.is_model_ready("nobody")]


@case("server and models are ready over gRPC")
def over_grpc(server):
    client = server.grpc
    return [client.is_server_live(), client.is_server_ready(), client.is_model_ready("fixed"), client.is_model_ready("versions", "2"),
            attempt(client.is_model_ready, "versions", "3"), attempt(client.is_model_ready, "nobody")]


@case("health answers without a body")
def bare(server):
    paths = ("health/live", "health/ready", "models/fixed/ready", "models/fixed/versions/1/ready", "models/nobody/ready",
             "models/spare/ready", "models/fixed/versions/9/ready")
    return {path: server.get(f"/v2/{path}") for path in paths}


@case("routes refuse other methods, and there are no other routes")
def routes(server):
    asked = (("POST", "/v2/health/live"), ("HEAD", "/v2/health/ready"), ("PUT", "/v2/models/fixed/infer"), ("GET", "/v2/models/fixed/infer"),
             ("DELETE", "/v2/repository/index"), ("POST", "/v2/models/fixed"), ("GET", "/v2/nothing"), ("GET", "/"), ("GET", "/v2/models/a/b/c"))
    return {f"{method} {path}": server.call(method, path).seen() for method, path in asked}


@case("the gRPC health service says SERVING")
def health_service(server):
    with grpc.insecure_channel(server.grpc_address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes, response_deserializer=bytes)
        return list(check(b"", timeout=20))
