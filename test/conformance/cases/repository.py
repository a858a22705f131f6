"""The model repository under explicit control: index, load, unload and what a load may override."""
import json
import time

import tritonclient.http as http_client
from support import attempt, case, floats, outputs, tensors

ROW = {"INPUT0": floats(1, 2)}


def entries(answer, *names):
    """The index entries of the named models, by name; reasons of failures are the backend's own words."""
    found = {}
    for entry in answer:
        if entry["name"] in names:
            entry = {key: value for key, value in entry.items() if key != "reason" or value == "unloaded"}
            found.setdefault(entry["name"], []).append(entry)
    return found


def index(server, *names):
    return entries(server.http.get_model_repository_index(), *names)


def row(server, model):
    """What the model makes of [1, 2]."""
    return attempt(lambda: outputs(server.http.infer(model, tensors(http_client, ROW)))["OUTPUT0"]["data"])


def summary(error):
    """The part of a load failure that does not depend on the backend."""
    if isinstance(error, dict) and "UNAVAILABLE state: " in error["error"]:
        return {**error, "error": error["error"].split("UNAVAILABLE state: ")[0] + "UNAVAILABLE state: …"}
    return error


@case("the index names every model and its state")
def whole_index(server):
    return {"states": index(server, "fixed", "versions", "spare", "broken"),
            "ready only": sorted({entry["name"] for entry in server.post("/v2/repository/index", {"ready": True})["body"]} & {"fixed", "spare", "broken"})}


@case("the index is the same over gRPC")
def grpc_index(server):
    answer = server.grpc.get_model_repository_index(as_json=True)["models"]
    return entries(answer, "fixed", "versions")


@case("the index takes no other body than JSON, and no repository name")
def index_faults(server):
    named = server.post("/v2/repository/mine/index", {})["status"]
    return [server.post("/v2/repository/index", b"{"), server.post("/v2/repository/index", {"ready": "yes"}), named,
            server.post("/v2/repository/mine/models/fixed/load"), server.post("/v2/repository/mine/models/fixed/unload")]


def unloaded(server, model, names):
    """Waits until what was unloaded, or replaced by a load, is gone: both are answered before."""
    for _ in range(100):
        if all(entry.get("state") != "UNLOADING" for entry in index(server, *names).get(model, [])):
            return index(server, *names)
        time.sleep(0.05)
    return "still unloading"


for name in ("HTTP", "gRPC"):

    @case(f"a model loads, answers and unloads over {name}")
    def life(server, name=name):
        client = server.http if name == "HTTP" else server.grpc
        seen = [row(server, "spare")]
        client.load_model("spare")
        seen += [index(server, "spare"), row(server, "spare"), client.is_model_ready("spare")]
        client.load_model("spare")
        seen.append(row(server, "spare"))
        client.unload_model("spare")
        return [*seen, unloaded(server, "spare", ["spare"]), attempt(row, server, "spare")]

    @case(f"models that cannot be loaded say so over {name}")
    def cannot(server, name=name):
        client = server.http if name == "HTTP" else server.grpc
        models = ("nobody", "broken", "broken_policy", "broken_versions")
        return {model: summary(attempt(client.load_model, model)) for model in models}

    @case(f"a load may bring its own config over {name}")
    def own_config(server, name=name):
        client = server.http if name == "HTTP" else server.grpc
        config = {**json.loads(server.config("spare")), "max_batch_size": 3}
        client.load_model("spare", config=json.dumps(config))
        seen = [server.http.get_model_config("spare")["max_batch_size"], row(server, "spare")]
        client.unload_model("spare")
        return [*seen, unloaded(server, "spare", ["spare"])]

    @case(f"faulty overrides are refused over {name}")
    def faulty(server, name=name):
        client = server.http if name == "HTTP" else server.grpc
        return {"no JSON": attempt(client.load_model, "spare", config="{"), "no object": attempt(client.load_model, "spare", config="[]"),
                "unknown field": attempt(client.load_model, "spare", config='{"max_batch_sizes":1}'),
                "files without config": attempt(client.load_model, "spare", files={"file:1/model.onnx": b"x"}), "still unloaded": row(server, "spare")}

    @case(f"a load may bring its own files over {name}")
    def own_files(server, name=name):
        client = server.http if name == "HTTP" else server.grpc
        # Whatever file runs behind version 2 of another model: it doubles.
        model_file, content = server.version_file("versions", "2")
        client.load_model("spare_files", config=server.config("spare_files"), files={f"file:5/{model_file}": content})
        seen = [index(server, "spare_files"), row(server, "spare_files")]
        client.load_model("spare_files")
        seen += [unloaded(server, "spare_files", ["spare_files"]), row(server, "spare_files")]
        client.unload_model("spare_files")
        return [*seen, unloaded(server, "spare_files", ["spare_files"])]


@case("load parameters that nobody knows are refused over HTTP")
def unknown_parameters(server):
    def load(parameters):
        return server.post("/v2/repository/models/spare/load", {"parameters": parameters})

    model_file, _ = server.version_file("spare", "1")
    return {"unknown": load({"speed": "high"}), "no base64": load({"config": server.config("spare"), f"file:1/{model_file}": "***"})["status"],
            "no text": load({"config": 3}), "body": server.post("/v2/repository/models/spare/load", b"{")}


@case("an unload that changes nothing succeeds")
def unload_nothing(server):
    return [server.post("/v2/repository/models/nobody/unload"), server.post("/v2/repository/models/spare/unload"),
            server.post("/v2/repository/models/spare/unload", {"parameters": {"unload_dependents": True}}),
            server.post("/v2/repository/models/spare/unload", {"parameters": {"unload_dependents": "yes"}})]


@case("a failed reload leaves the model as it was")
def failed_reload(server):
    client = server.http
    client.load_model("spare")
    seen = [row(server, "spare"), summary(attempt(client.load_model, "spare", config='{"max_batch_size":"many"}'))["status"], row(server, "spare")]
    client.unload_model("spare")
    unloaded(server, "spare", ["spare"])
    return seen
