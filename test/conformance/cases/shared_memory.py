"""Tensors in memory that client and server share."""
import json
import os
from contextlib import contextmanager

import numpy as np
import tritonclient.utils.shared_memory as shared_memory
from google.protobuf.json_format import MessageToDict
from support import attempt, case, integers, outputs, strings, tensors
from transports import TRANSPORTS
from tritonclient.utils import serialize_byte_tensor

# Of this process alone: servers of several shapes may be tested at the same time.
OWN = f"tidepool_{os.getpid()}"


@contextmanager
def regions(server, **sizes):
    """Registered regions by their names, each in an object of its own."""
    handles = {name: shared_memory.create_shared_memory_region(name, f"/{OWN}_{name}", size) for name, size in sizes.items()}
    try:
        for name, size in sizes.items():
            server.http.register_system_shared_memory(name, f"/{OWN}_{name}", size)
        yield handles
    finally:
        server.http.unregister_system_shared_memory()
        for handle in handles.values():
            shared_memory.destroy_shared_memory_region(handle)


def scrubbed(seen):
    """Without what is this process' own."""
    return json.loads(json.dumps(seen).replace(OWN, "OWN"))


def in_memory(tensor, region, size, offset=0):
    tensor.set_shared_memory(region, size, offset)
    return tensor


def told(result, name="OUTPUT0"):
    """What the answer itself tells of an output."""
    output = result.get_output(name)
    output = output if isinstance(output, dict) else MessageToDict(output)
    return {key: [int(size) for size in value] if key == "shape" else value for key, value in output.items()}


def taken(handle, datatype, shape, offset=0):
    return shared_memory.get_contents_as_numpy(handle, datatype, shape, offset).tolist()


for way, (kind, send) in TRANSPORTS.items():

    @case(f"shared memory takes inputs and outputs over {way}")
    def both_ways(server, kind=kind, send=send):
        with regions(server, given=64, taken=128) as handles:
            shared_memory.set_shared_memory_region(handles["given"], [np.arange(16, dtype=np.float32)])
            given = [in_memory(kind.InferInput("INPUT0", [1, 16], "FP32"), "given", 64)]
            wanted = [in_memory(kind.InferRequestedOutput("OUTPUT0"), "taken", 64, 32)]
            result = send(server, "fixed", given, outputs=wanted)
            return {"told": told(result), "taken": taken(handles["taken"], np.float32, [32])}


def places(kind):
    """Input and output for the model `fixed`, in regions that are larger than they are."""
    return in_memory(kind.InferInput("INPUT0", [1, 16], "FP32"), "given", 64), in_memory(kind.InferRequestedOutput("OUTPUT0"), "taken", 64)


for way in ("HTTP", "gRPC"):
    kind, send = TRANSPORTS[way]

    @case(f"shared memory mixes with tensors in the request over {way}")
    def mixed(server, kind=kind, send=send):
        with regions(server, given=16, taken=16) as handles:
            shared_memory.set_shared_memory_region(handles["given"], [np.array([5, 6, 7, 8], np.int32)])
            first = in_memory(kind.InferInput("INPUT0", [1, 4], "INT32"), "given", 16)
            given = [first, *tensors(kind, {"INPUT1": integers(1, 2, 3, 4)})]
            wanted = [kind.InferRequestedOutput("OUTPUT0"), in_memory(kind.InferRequestedOutput("OUTPUT1"), "taken", 16)]
            result = send(server, "add_sub", given, outputs=wanted)
            return {**outputs(result), "told": told(result, "OUTPUT1"), "taken": taken(handles["taken"], np.int32, [4])}

    @case(f"shared memory holds strings over {way}")
    def texts(server, kind=kind, send=send):
        words = strings("a", "", "déjà vu")
        size = sum(4 + len(word) for word in words[0])
        with regions(server, given=size, taken=64) as handles:
            shared_memory.set_shared_memory_region(handles["given"], [serialize_byte_tensor(words)])
            given = in_memory(kind.InferInput("INPUT0", [1, 3], "BYTES"), "given", size)
            result = send(server, "identity_BYTES", [given], outputs=[in_memory(kind.InferRequestedOutput("OUTPUT0"), "taken", 64)])
            array = shared_memory.get_contents_as_numpy(handles["taken"], np.object_, [1, 3])
            return {"told": told(result), "taken": [text.decode() for text in array[0]]}

    @case(f"shared memory slices that do not fit are refused over {way}")
    def misfits(server, kind=kind, send=send):
        faults = {
            "input of another size": (("given", 68), None), "input beyond the region": (("given", 64, 68), None),
            "input behind the region": (("given", 64, 128), None), "input of no bytes": (("given", 0), None), "unknown input": (("nobody", 64), None),
            "input of a huge size": (("given", 2**62), None), "input at a huge offset": (("given", 64, 2**62), None),
            "output too small": (None, ("taken", 60)), "output beyond the region": (None, ("taken", 129)),
            "output behind the region": (None, ("taken", 64, 128)), "output of no bytes": (None, ("taken", 0)), "unknown output": (None, ("nobody", 64)),
        }
        with regions(server, given=128, taken=128):
            seen = {}
            for title, (place, goal) in faults.items():
                given, wanted = places(kind)
                in_memory(given, *place) if place else None
                in_memory(wanted, *goal) if goal else None
                seen[title] = attempt(send, server, "fixed", [given], outputs=[wanted])
            return seen


@case("shared memory regions are registered, shown and forgotten")
def lifetime(server):
    system = "/v2/systemsharedmemory"
    with regions(server, b=64, a=32):
        over_grpc = server.grpc.get_system_shared_memory_status(as_json=True)
        seen = [
            sorted(server.http.get_system_shared_memory_status(), key=lambda region: region["name"]), over_grpc,
            server.http.get_system_shared_memory_status("a"), server.grpc.get_system_shared_memory_status("a", as_json=True),
            attempt(server.http.register_system_shared_memory, "a", f"/{OWN}_b", 64), attempt(server.grpc.register_system_shared_memory, "a", f"/{OWN}_b", 64),
            server.grpc.unregister_system_shared_memory("a"), attempt(server.http.get_system_shared_memory_status, "a"), attempt(server.grpc.get_system_shared_memory_status, "a"),
            server.post(f"{system}/region/a/unregister"), server.post(f"{system}/unregister"), server.get(f"{system}/status"), server.grpc.get_system_shared_memory_status(as_json=True),
        ]
        return scrubbed(seen)


@case("shared memory regions that cannot be are refused")
def no_regions(server):
    handle = shared_memory.create_shared_memory_region("object", f"/{OWN}_object", 64)
    try:
        def register(key, size, offset=0):
            return [attempt(client.register_system_shared_memory, "r", key, size, offset) for client in (server.http, server.grpc)]

        key = f"/{OWN}_object"
        faults = {"too large": (key, 65), "beyond": (key, 64, 1), "behind": (key, 1, 64), "huge": (key, 2**62), "far": (key, 1, 2**62), "missing": ("/nowhere_at_all", 1),
                  "empty key": ("", 1), "slash": ("/", 1), "folder": ("/..", 1), "elsewhere": ("/../etc/passwd", 1)}
        return scrubbed({title: register(*fault) for title, fault in faults.items()})
    finally:
        server.http.unregister_system_shared_memory()
        shared_memory.destroy_shared_memory_region(handle)


@case("shared memory requests with faults are refused over HTTP")
def faulty_requests(server):
    register = "/v2/systemsharedmemory/region/r/register"
    bodies = {"empty": b"", "brace": b"{", "no key": {"byte_size": 1}, "no size": {"key": "/k"}, "number for a key": {"key": 1, "byte_size": 1},
              "text for a size": {"key": "/k", "byte_size": "1"}, "negative size": {"key": "/k", "byte_size": -1}, "text for an offset": {"key": "/k", "byte_size": 1, "offset": "0"}}
    seen = {title: server.post(register, body) for title, body in bodies.items()}
    paths = ["region/r", "region/status", "register", "region/r/register/x"]
    return {**seen, **{path: server.post(f"/v2/systemsharedmemory/{path}", {}) for path in paths}, "GET": server.get(register),
            "POST": server.post("/v2/systemsharedmemory/status"), "cuda": server.get("/v2/cudasharedmemory/status"), "cuda r": server.get("/v2/cudasharedmemory/region/r/status"),
            "cuda register": server.post("/v2/cudasharedmemory/register", {}), "cuda unregister": server.post("/v2/cudasharedmemory/region/r/unregister")}


@case("shared memory parameters with faults are refused over HTTP")
def faulty_parameters(server):
    def sent(given, wanted=None, **more):
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 16], "parameters": given, **more}
        goals = {"outputs": [{"name": "OUTPUT0", "parameters": wanted}]} if wanted else {}
        return server.post("/v2/models/fixed/infer", {"inputs": [tensor], **goals})

    region, size, offset = "shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"
    good, goal = {region: "given", size: 64}, {region: "taken", size: 64}
    with regions(server, given=64, taken=64):
        return {
            "region of a number": sent({region: 1, size: 64}), "no size": sent({region: "given"}), "size of a text": sent({region: "given", size: "64"}),
            "negative size": sent({region: "given", size: -1}), "negative offset": sent({**good, offset: -1}), "offset beyond 2^63": sent({**good, offset: 2**64 - 32}),
            "only a size": sent({size: 64}), "beside data": sent(good, data=[0] * 16), "beside binary data": sent({**good, "binary_data_size": 64}),
            "classes there": sent(good, {**goal, "classification": 2}), "binary there": sent(good, {**goal, "binary_data": True}), "not binary there": sent(good, {**goal, "binary_data": False}),
        }
