"""What server and models say of themselves."""
from google.protobuf.json_format import MessageToDict
from support import attempt, case

# What depends on the backend behind the model, or on the machine.
OWN = ("backend", "platform", "default_model_filename", "runtime", "optimization")
MODELS = ("fixed", "add_sub", "identity_BYTES", "grid", "scalar", "versions", "latest", "word")


def common(config):
    return {key: value for key, value in config.items() if key not in OWN}


@case("server metadata lists the extensions")
def extensions(server):
    return {"http": server.http.get_server_metadata()["extensions"], "grpc": list(server.grpc.get_server_metadata().extensions)}


@case("server metadata has a name and a version")
def name_and_version(server):
    answer = server.http.get_server_metadata()
    return {"keys": sorted(answer), "types": [type(answer[key]).__name__ for key in ("name", "version")]}


@case("model metadata over HTTP and gRPC")
def model_metadata(server):
    def both(model):
        over_grpc = MessageToDict(server.grpc.get_model_metadata(model), preserving_proto_field_name=True)
        return [common(server.http.get_model_metadata(model)), common(over_grpc)]

    return {model: both(model) for model in MODELS}


@case("model metadata of one version, and of those that do not exist")
def one_version(server):
    paths = ("models/versions/versions/2", "models/versions/versions/7", "models/nobody", "models/spare", "models/versions/versions/x")
    over_grpc = {f"{model} {version}": attempt(lambda: list(server.grpc.get_model_metadata(model, version).versions))
                 for model, version in (("versions", "2"), ("versions", "7"), ("nobody", ""), ("versions", "x"))}
    found = {path: server.get(f"/v2/{path}") for path in paths}
    found[paths[0]]["body"] = common(found[paths[0]]["body"])
    return {**found, **over_grpc}


@case("model configs over HTTP")
def config_over_http(server):
    return {model: common(server.http.get_model_config(model)) for model in (*MODELS, "waiting", "crowded", "scores")}


@case("model configs over gRPC")
def config_over_grpc(server):
    def config(model):
        return MessageToDict(server.grpc.get_model_config(model).config, preserving_proto_field_name=True)

    return {model: common(config(model)) for model in (*MODELS, "waiting", "crowded", "scores")}


@case("configs of models that do not exist are refused")
def no_config(server):
    return [server.get("/v2/models/nobody/config"), server.get("/v2/models/fixed/versions/4/config"), attempt(server.grpc.get_model_config, "nobody")]
