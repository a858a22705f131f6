"""What the server counted after requests that are known."""
import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support import attempt, case, integers, tensors

ROW = {"INPUT0": integers(1, 2, 3, 4), "INPUT1": integers(1, 2, 3, 4)}
ROWS = {name: np.ones((3, 4), np.int32) for name in ROW}


def counts(server):
    """Every count, without the times: those only have to be there."""
    (found,) = server.http.get_inference_statistics("counted")["model_stats"]
    stats = found["inference_stats"]
    return {
        "inferences": found["inference_count"], "executions": found["execution_count"], "asked": found["last_inference"] > 0,
        **{phase: [stats[phase]["count"], stats[phase]["ns"] > 0] for phase in stats},
        "batches": {batch["batch_size"]: {key: batch[key]["count"] for key in batch if key != "batch_size"} for batch in found["batch_stats"]},
        "others": {key: found[key] for key in ("response_stats", "memory_usage")},
    }


@case("statistics count requests, inferences, executions and failures")
def counted(server):
    before = counts(server)
    for arrays in (ROW, ROW, ROWS):
        server.http.infer("counted", tensors(http_client, arrays))
    server.grpc.infer("counted", tensors(grpc_client, ROWS))
    attempt(server.http.infer, "counted", tensors(http_client, {"INPUT0": ROW["INPUT0"]}))
    attempt(server.http.infer, "counted", tensors(http_client, {name: np.ones((9, 4), np.int32) for name in ROW}))
    return [before, counts(server)]


@case("statistics of all models, one version and none")
def asked(server):
    def names(answer):
        return [f"{found['name']}/{found['version']}" for found in answer["model_stats"]]

    all_models = names(server.http.get_inference_statistics())
    found = server.grpc.get_inference_statistics("versions", as_json=True)["model_stats"]
    return {"all": [name for name in sorted(all_models) if name.startswith(("fixed", "versions", "spare"))], "both": names(server.http.get_inference_statistics("versions")),
            "one": names(server.http.get_inference_statistics("versions", "2")), "gRPC": [[entry["name"], entry["version"]] for entry in found],
            "unknown": [server.get("/v2/models/nobody/stats"), server.get("/v2/models/versions/versions/9/stats")],
            "unknown over gRPC": attempt(server.grpc.get_inference_statistics, "nobody")}
