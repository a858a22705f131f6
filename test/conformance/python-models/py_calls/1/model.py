"""Calls other models, in the way that its input names, and tells what came of it."""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils


def request(model, inputs, outputs, **more):
    tensors = [pb_utils.Tensor(name, array) for name, array in inputs.items()]
    return pb_utils.InferenceRequest(model_name=model, inputs=tensors, requested_output_names=outputs, **more)


def add_sub(**more):
    row = np.arange(4, dtype=np.int32).reshape(1, 4)
    return request("add_sub", {"INPUT0": row, "INPUT1": row}, ["OUTPUT0", "OUTPUT1"], **more)


def order(**order):
    return request("py_decoupled", {"ORDER": np.array([json.dumps(order)], dtype=object)}, ["OUT"])


def failing(mode):
    return request("py_errors", {"MODE": np.array([mode], dtype=object)}, ["ANSWER"])


def seen(response):
    if response.has_error():
        return {"error": response.error().message().split("\n")[0]}
    outputs = {tensor.name(): repr(tensor.as_numpy().tolist()) for tensor in response.output_tensors()}
    return {"outputs": outputs, "none": pb_utils.get_output_tensor_by_name(response, "nobody")}


def refused(function, *arguments, **options):
    try:
        return seen(function(*arguments, **options))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class TritonPythonModel:
    def initialize(self, args):
        self.early = refused(add_sub().exec)

    async def execute(self, requests):
        return [await self.answer(request) for request in requests]

    async def answer(self, given):
        mode = pb_utils.get_input_tensor_by_name(given, "MODE").as_numpy()[0].decode()
        answer = getattr(self, mode)()
        if asyncio.iscoroutine(answer):
            answer = await answer
        return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([json.dumps(answer)], dtype=object))])

    def sync(self):
        return [seen(add_sub().exec()), seen(request("add_sub", {"INPUT0": np.ones((2, 4), np.int32), "INPUT1": np.ones((2, 4), np.int32)}, ["OUTPUT1"]).exec())]

    async def together(self):
        return [seen(response) for response in await asyncio.gather(*[add_sub().async_exec() for _ in range(20)])]

    def errors(self):
        return [
            seen(failing("raise").exec()),
            seen(failing("NOT_FOUND").exec()),
            seen(request("add_sub", {"INPUT0": np.ones((1, 4), np.int32), "INPUT1": np.ones((1, 3), np.int32)}, ["OUTPUT0"]).exec()),
            seen(request("nobody", {}, []).exec()),
            seen(add_sub(model_version=9).exec()),
            seen(request("add_sub", {"INPUT0": np.ones((1, 4), np.int32)}, ["OUTPUT0"]).exec()),
            seen(order(count=1).exec()),
        ]

    def many(self):
        return [
            [seen(response) for response in order(count=3, final="with the last").exec(decoupled=True)],
            [seen(response) for response in order(count=2).exec(decoupled=True)],
            [seen(response) for response in order(count=0).exec(decoupled=True)],
            [seen(response) for response in add_sub().exec(decoupled=True)],
        ]

    def again(self):
        responses = order(count=3, final="with the last").exec(decoupled=True)
        first = [seen(next(responses))]
        return [first, [seen(response) for response in responses], [seen(response) for response in responses]]

    async def many_together(self):
        streams = await asyncio.gather(*[order(count=4, how="in a thread").async_exec(decoupled=True) for _ in range(3)])
        return [[seen(response) for response in stream] for stream in streams]

    def passed_on(self):
        given = {"NUMBERS": np.array([1.5], np.float32)}
        more = {"request_id": "its own", "correlation_id": 2**63 + 1, "flags": 3, "timeout": 5_000_000, "parameters": {"a": 1, "b": "x", "c": True}}
        response = request("py_request", given, ["ANSWER"], **more).exec()
        return json.loads(pb_utils.get_output_tensor_by_name(response, "ANSWER").as_numpy()[0])

    def mistakes(self):
        return [
            refused(add_sub, parameters={"a": 1.5}),
            refused(add_sub, parameters={1: "a"}),
            refused(pb_utils.InferenceRequest, model_name="add_sub", inputs=[None], requested_output_names=[]),
            refused(pb_utils.InferenceRequest, model_name="add_sub", inputs=[], requested_output_names=[""]),
            self.early,
        ]

    def large(self):
        row = np.arange(300_000, dtype=np.float32).reshape(1, -1)
        response = request("identity_FP32", {"INPUT0": row}, ["OUTPUT0"]).exec()
        return bool((pb_utils.get_output_tensor_by_name(response, "OUTPUT0").as_numpy() == row).all())

    def ensemble(self):
        return seen(request("ensemble_chain", {"IN": np.array([[1, 2]], np.float32)}, ["OUT"]).exec())
