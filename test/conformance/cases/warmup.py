"""What models run before they are ready."""
from support import attempt, case

FAULTS = ("data", "dimension", "type", "shape", "input")


def reason(server, model):
    """Why a model does not load, without the kind of the error."""
    error = attempt(server.http.load_model, model)
    return {**error, "error": error["error"].split("UNAVAILABLE state: ")[1].removeprefix("Invalid argument: ").strip(";\n ")}


@case("warmup runs on every instance and is counted like requests")
def counted(server):
    def counts(model):
        (found,) = server.http.get_inference_statistics(model)["model_stats"]
        phases = {phase: found["inference_stats"][phase]["count"] for phase in ("success", "fail", "queue", "compute_infer")}
        batches = {batch["batch_size"]: batch["compute_infer"]["count"] for batch in found["batch_stats"]}
        return [found["inference_count"], found["execution_count"], phases, batches]

    return {model: counts(model) for model in ("warm", "warm_twice", "warm_strings", "warm_file")}


@case("a sample of warmup that cannot be made fails the load")
def faults(server):
    return {fault: reason(server, f"broken_warmup_{fault}") for fault in FAULTS}


@case("a sample of warmup that fails, fails the load", fatal=True)
def failing(server):
    failed = reason(server, "broken_warmup_run")
    return {"batch": reason(server, "broken_warmup_batch"), "run": {**failed, "error": failed["error"].split("': ")[0]}}
