"""The response cache: which requests it answers, and what is counted of them."""
import numpy as np
import tritonclient.http as http_client
from support import attempt, case, floats, outputs, tensors
from transports import TRANSPORTS

PHASES = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")


def counts(server, model):
    """How often each thing has happened, and whether it took time."""
    (found,) = server.http.get_inference_statistics(model)["model_stats"]
    stats = found["inference_stats"]
    return {"inferences": found["inference_count"], "executions": found["execution_count"],
            **{phase: [stats[phase]["count"], stats[phase]["ns"] > 0] for phase in PHASES}}


def grown(server, model, act):
    """What an act has answered, and how often each thing has happened meanwhile."""
    before = counts(server, model)
    answer = act()
    after = counts(server, model)
    difference = {key: after[key] - before[key] for key in ("inferences", "executions")}
    return {"answer": answer, **difference, **{phase: after[phase][0] - before[phase][0] for phase in PHASES}}


def ask(server, model, array, name="INPUT0", **options):
    return server.http.infer(model, tensors(http_client, {name: array}), **options)


for number, (transport, (kind, infer)) in enumerate(TRANSPORTS.items()):

    @case(f"the response cache answers the same request again over {transport}")
    def again(server, kind=kind, infer=infer, number=number):
        def one(model, value, request_id):
            result = infer(server, model, tensors(kind, {"INPUT0": floats(value, number)}), request_id=request_id)
            response = result.get_response()
            found = response["id"] if isinstance(response, dict) else response.id
            return [found, outputs(result, "OUTPUT0")]

        asked = ((1, "a"), (1, "b"), (2, "c"), (1, "d"))
        return {model: grown(server, model, lambda: [attempt(one, model, *values) for values in asked])
                for model in ("cached", "cached_batching")}


@case("the response cache looks past id, priority and timeout")
def past(server):
    row = floats(30, 31)

    def act():
        asked = [{}, {"request_id": "x"}, {"priority": 1}, {"timeout": 5_000_000}]
        return [outputs(ask(server, "cached", row, **options), "OUTPUT0") for options in asked]

    return grown(server, "cached", act)


@case("the response cache tells parameters apart")
def parameters(server):
    row = floats(40, 41)
    return grown(server, "cached", lambda: [outputs(ask(server, "cached", row, parameters=given), "OUTPUT0") for given in ({"a": 1}, {"a": 2}, {"a": 1})])


@case("the response cache tells shapes of the same bytes apart")
def shapes(server):
    rows = [np.arange(4, dtype=np.float32).reshape(shape) for shape in ((1, 4), (2, 2), (4, 1))]
    return grown(server, "cached", lambda: [outputs(ask(server, "cached", row), "OUTPUT0") for row in rows])


@case("the response cache answers the step of an ensemble")
def step(server):
    row = floats(50, 51)
    return grown(server, "cached_part", lambda: [
        outputs(ask(server, "cached_part", row * 2), "OUTPUT0"),
        *[outputs(ask(server, "ensemble_of_cached", row, "IN"), "OUT") for _ in range(2)],
    ])


@case("the response cache answers for a whole ensemble")
def whole(server):
    row = floats(60, 61)
    return grown(server, "double", lambda: grown(server, "ensemble_cached", lambda: [outputs(ask(server, "ensemble_cached", row, "IN"), "OUT") for _ in range(3)]))


@case("statistics of the response cache tell what lookups took")
def durations(server):
    for _ in range(2):
        ask(server, "cached", floats(70, 71))
    found = counts(server, "cached")
    return {phase: found[phase][1] for phase in PHASES}
