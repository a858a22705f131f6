"""Who runs with whom and who waits: priorities and queue policies. A model answers with sums over the rows of its batch."""
import queue
import time

import numpy as np
import tritonclient.grpc as grpc_client
from support import attempt, case, floats, tensors
from transports import TRANSPORTS

# Between two requests of which one must have arrived before the other.
GAP_SECONDS = 0.1


def send_all(server, model, *requests):
    """Sends requests, each rows of one value and options, one after the other; gives the sums or the errors of each."""
    answers = queue.Queue()
    for number, (values, options) in enumerate(requests):
        time.sleep(options.pop("after", GAP_SECONDS))
        rows = tensors(grpc_client, {"INPUT0": np.array(values, np.float32).reshape(-1, 1)})
        server.grpc.async_infer(model, rows, lambda result, error, number=number: answers.put((number, result, error)), **options)
    found = dict((number, error.message() if error else result.as_numpy("OUTPUT0").reshape(-1).tolist()) for number, result, error in [answers.get(timeout=20) for _ in requests])
    return [found[number] for number in range(len(requests))]


def timed(infer, server, model, rows, **options):
    """The status or the sums, and whether it took as long as the model's timeout of 0.3 seconds."""
    began = time.monotonic()
    answer = attempt(infer, server, model, rows, **options)
    seconds = time.monotonic() - began
    shown = answer["status"] if isinstance(answer, dict) else answer.as_numpy("OUTPUT0").tolist()
    return {"answer": shown, "seconds": "0 to 0.3" if seconds < 0.29 else "0.3 to 1.2" if seconds < 1.2 else "more"}


@case("a batch is filled by priority, and within a level by arrival")
def by_priority(server):
    return send_all(server, "scheduled_levels", ([1], {"priority": 3}), ([2], {}), ([4], {"priority": 1}), ([8], {"priority": 7}))


@case("a request of a higher priority leaves others to the next batch")
def overtaken(server):
    return send_all(server, "scheduled_levels", ([1], {"priority": 3}), ([2], {"priority": 3}), ([4], {"priority": 2}), ([8, 16], {"priority": 1}))


@case("priorities mean nothing to a model without levels")
def no_levels(server):
    return send_all(server, "scheduled_plain", *[([2**n], {"priority": 4 - n}) for n in range(4)])


@case("a full queue refuses by level")
def full_levels(server):
    levels = [1, 1, 2, 2, 2]
    return send_all(server, "scheduled_limits", *[([2**n], {"priority": level}) for n, level in enumerate(levels)])


@case("a request whose time is over is delayed behind its level, where the policy is DELAY")
def delayed(server):
    return send_all(server, "scheduled_delaying", ([1], {"priority": 1}), ([2], {"priority": 2}), ([4], {"priority": 1, "after": 1.1}))


@case("a request of another shape closes the batch")
def unequal(server):
    answers = queue.Queue()
    began = time.monotonic()
    for size in (2, 2, 3):
        row = tensors(grpc_client, {"INPUT0": np.ones((1, size), np.float32)})
        server.grpc.async_infer("scheduled_plain", row, lambda result, error, size=size: answers.put((size, bool(error), time.monotonic() - began < 1)))
        time.sleep(GAP_SECONDS)
    return sorted(answers.get(timeout=20) for _ in range(3))


for transport in ("HTTP", "gRPC"):
    kind, infer = TRANSPORTS[transport]

    @case(f"a queue policy bounds the time in the queue over {transport}")
    def bounded(server, kind=kind, infer=infer):
        row = tensors(kind, {"INPUT0": floats(1)})
        asked = {"nothing": {}, "less": {"timeout": 10_000}, "more": {"timeout": 10_000_000}}
        return {
            model: {name: timed(infer, server, f"scheduled_{model}", row, **options) for name, options in asked.items()}
            for model in ("rejecting", "overridden")
        }

    @case(f"a queue policy without a default leaves nothing to override over {transport}")
    def endless(server, kind=kind, infer=infer):
        return timed(infer, server, "scheduled_endless", tensors(kind, {"INPUT0": floats(1)}), timeout=10_000)

    @case(f"a request with a timeout, to a model without a queue policy, over {transport}")
    def without_policy(server, kind=kind, infer=infer):
        return timed(infer, server, "scheduled_plain", tensors(kind, {"INPUT0": floats(1)}), timeout=10_000)
