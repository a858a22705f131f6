"""Sleeps in the background, so that several requests sleep at the same time."""

import asyncio

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            seconds = pb_utils.get_input_tensor_by_name(request, "SECONDS").as_numpy().copy()
            await asyncio.sleep(float(seconds[0]))
            response = pb_utils.InferenceResponse([pb_utils.Tensor("SECONDS_SLEPT", seconds)])
            request.get_response_sender().send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
