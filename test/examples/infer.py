"""Asks a model with tritonclient, at once and asynchronously: `infer.py http|grpc ADDRESS MODEL`.

Reads a request as JSON: {"inputs": [{"name", "datatype", "shape", "data"}], "outputs": [names], "version"}. Data that is shorter
than its shape starts again at its end. Instead of shape and data an input may have "files": their bytes, one row a file.
Prints the outputs as JSON by their names, each with its shape and data.
"""
import importlib
import json
import queue
import sys
from functools import partial
from pathlib import Path

import numpy as np


def main(protocol, address, model):
    triton = importlib.import_module(f"tritonclient.{protocol}")
    asked = json.load(sys.stdin)
    client = triton.InferenceServerClient(url=address)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(model)

    inputs = []
    for given in asked["inputs"]:
        array = array_of(given)
        inputs.append(triton.InferInput(given["name"], list(array.shape), given["datatype"]))
        inputs[-1].set_data_from_numpy(array)
    outputs = [triton.InferRequestedOutput(name) for name in asked["outputs"]]
    call = {"model_name": model, "inputs": inputs, "outputs": outputs, "model_version": asked.get("version", "")}

    at_once, later = client.infer(**call), asynchronously(client, protocol, call)
    for name in asked["outputs"]:
        np.testing.assert_array_equal(at_once.as_numpy(name), later.as_numpy(name))
    print(json.dumps({name: shown(at_once.as_numpy(name)) for name in asked["outputs"]}))


def array_of(given):
    if "files" in given:
        files = [np.frombuffer(Path(name).read_bytes(), np.uint8) for name in given["files"]]
        longest = max(map(len, files))
        return np.stack([np.pad(file, (0, longest - len(file))) for file in files])
    dtype = importlib.import_module("tritonclient.utils").triton_to_np_dtype(given["datatype"])
    return np.resize(np.array(given["data"], dtype=dtype), given["shape"])


def asynchronously(client, protocol, call):
    if protocol == "http":
        return client.async_infer(**call).get_result(timeout=30)
    answers = queue.Queue()
    client.async_infer(**call, callback=partial(lambda answers, result, error: answers.put((result, error)), answers))
    result, error = answers.get(timeout=30)
    if error:
        raise error
    return result


def shown(array):
    texts = [item.decode() for item in array.reshape(-1)] if array.dtype == object else array.reshape(-1).tolist()
    return {"shape": array.shape, "data": texts}


if __name__ == "__main__":
    main(*sys.argv[1:])
