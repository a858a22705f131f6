"""Ensembles: what they answer, count and refuse, and how they follow the models that they are composed of."""
import time

import numpy as np
import tritonclient.http as http_client
from support import attempt, case, floats, outputs, tensors
from transports import TRANSPORTS

ROW = {"IN": floats(1, 2)}
ROWS = {"IN": np.array([[1, 2], [3, 4], [5, 6]], np.float32)}
BROKEN = "nobody member version input open output type shape between batch circle self".split()


def ask(server, model, arrays=ROW, *names):
    """What the ensemble answers over HTTP, as the client sees it."""
    return attempt(lambda: outputs(server.http.infer(model, tensors(http_client, arrays)), *(names or ("OUT",))))


for transport in ("HTTP", "gRPC", "gRPC stream"):
    kind, infer = TRANSPORTS[transport]

    @case(f"ensembles of every form answer over {transport}")
    def answers(server, kind=kind, infer=infer):
        forms = ("chain", "nested", "first", "latest", "any")
        seen = {form: outputs(infer(server, f"ensemble_{form}", tensors(kind, ROWS)), "OUT") for form in forms}
        return {**seen, "fan": outputs(infer(server, "ensemble_fan", tensors(kind, ROWS)), "SUM", "DIFFERENCE")}

    @case(f"a step of an ensemble refuses what its model cannot take over {transport}")
    def refused(server, kind=kind, infer=infer):
        wide = {"IN": floats(1, 2, 3)}
        return [attempt(infer, server, "ensemble_any", tensors(kind, wide), request_id=name) for name in ("", "seven")]

    @case(f"a timeout holds for the steps of an ensemble over {transport}")
    def timeout(server, kind=kind, infer=infer):
        return attempt(infer, server, "ensemble_waiting", tensors(kind, ROW), timeout=20_000)


@case("an ensemble answers only the outputs that are asked for")
def subset(server):
    found = server.http.infer("ensemble_fan", tensors(http_client, ROW), outputs=[http_client.InferRequestedOutput("DIFFERENCE")])
    return outputs(found, "SUM", "DIFFERENCE")


@case("an ensemble gives classes with its own labels")
def classes(server):
    asked = [http_client.InferRequestedOutput("OUT", class_count=2)]
    return outputs(server.http.infer("ensemble_labels", tensors(http_client, ROWS), outputs=asked), "OUT")


@case("models with batches and without go together in an ensemble")
def batches(server):
    one = {"IN": np.array([1, 2], np.float32)}
    return {"unbatched": ask(server, "ensemble_unbatched", one), "mixed": ask(server, "ensemble_mixed"),
            "mixed, more than one": ask(server, "ensemble_mixed", ROWS),
            "too many": ask(server, "ensemble_chain", {"IN": np.ones((9, 2), np.float32)})}


@case("an ensemble tells of the request's sequence in its response")
def sequence(server):
    def parameters(model, given):
        body = {"id": "a", "inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}], "parameters": given}
        answer = server.post(f"/v2/models/{model}/infer", body)["body"]
        return {key: answer[key] for key in answer if key != "outputs"}

    return [parameters(model, given) for model in ("ensemble_chain", "ensemble_nested") for given in ({}, {"sequence_id": 5, "sequence_start": True})]


@case("metadata and config of an ensemble")
def metadata(server):
    seen = [[server.http.get_model_metadata(model), server.http.get_model_config(model)] for model in ("ensemble_chain", "ensemble_unbatched")]
    for _, config in seen:
        config["ensemble_scheduling"].pop("max_inflight_requests", None)  # younger than the reference that was asked
    return seen


@case("an ensemble counts its requests, and its models count theirs")
def counted(server):
    def counts(model):
        (found,) = server.http.get_inference_statistics(model)["model_stats"]
        stats = found["inference_stats"]
        return {"inferences": found["inference_count"], "executions": found["execution_count"], "asked": found["last_inference"] > 0,
                **{phase: stats[phase]["count"] for phase in stats},
                "batches": {batch["batch_size"]: batch["compute_infer"]["count"] for batch in found["batch_stats"]}}

    def both():
        return {model: counts(model) for model in ("spare_ensemble", "spare_double")}

    server.http.load_model("spare_ensemble")
    seen = [both()]
    for arrays in (ROW, ROWS):
        ask(server, "spare_ensemble", arrays)
    seen.append(settled(both, 2))
    forget(server, "spare_ensemble", "spare_double")
    return seen


def settled(counts, requests):
    """What is counted once all requests are: the reference counts a request after it has answered it."""
    for _ in range(100):
        found = counts()
        if found["spare_ensemble"]["success"] >= requests:
            break
        time.sleep(0.05)
    return found


def states(server, *names):
    """The states of the named models, when none of them is on its way to another."""
    for _ in range(200):
        found = {entry["name"]: [entry.get("state"), entry.get("reason")] for entry in server.http.get_model_repository_index() if entry["name"] in names}
        if not any("ING" in str(state) for state, _ in found.values()):
            return {name: found[name] for name in names}
        time.sleep(0.05)
    return "still on their way"


def forget(server, *names):
    for name in names:
        server.http.unload_model(name)
    states(server, *names)


SPARE = ("spare_double", "spare_ensemble", "spare_outer")


@case("an ensemble's load brings its models up, and its unload leaves them")
def load(server):
    seen = []
    server.http.load_model("spare_outer")
    seen.append([states(server, *SPARE), ask(server, "spare_outer")])
    server.http.unload_model("spare_outer")
    seen.append([states(server, *SPARE), ask(server, "spare_outer"), ask(server, "spare_ensemble")])
    forget(server, *SPARE)
    return seen


@case("an ensemble's models go with it when that is asked for")
def dependents(server):
    server.http.load_model("spare_outer")
    server.http.unload_model("spare_outer", unload_dependents=True)
    seen = [states(server, *SPARE)]
    server.http.load_model("spare_double")
    server.http.load_model("spare_ensemble")
    server.http.unload_model("spare_ensemble", unload_dependents=True)
    seen.append(states(server, *SPARE))
    forget(server, *SPARE)
    return seen


@case("an ensemble goes and comes with the models that it is composed of")
def follows(server):
    server.http.load_model("spare_outer")
    server.http.unload_model("spare_double")
    seen = [[states(server, *SPARE), ask(server, "spare_ensemble"), server.http.is_model_ready("spare_outer")]]
    server.http.load_model("spare_double")
    seen.append([states(server, *SPARE), ask(server, "spare_outer")])
    config = server.config("spare_double")
    server.http.load_model("spare_double", config=config.replace("[2]", "[3]"))
    seen.append([states(server, *SPARE), ask(server, "spare_ensemble")])
    server.http.load_model("spare_double", config=config)
    seen.append([states(server, *SPARE), ask(server, "spare_outer")])
    forget(server, *reversed(SPARE))
    return seen


@case("ensembles that cannot be loaded say so")
def broken(server):
    def refusal(name):
        found = attempt(server.http.load_model, f"broken_ensemble_{name}")
        # What ended the member's load are its backend's own words; why a config is none, only one of the servers says.
        return {**found, "error": found["error"].split("UNAVAILABLE state: ")[0].split(" from model repository")[0]}

    seen = {name: refusal(name) for name in BROKEN}
    for name in ["part", *(f"ensemble_{name}" for name in BROKEN)]:
        server.http.unload_model(f"broken_{name}")
    return seen
