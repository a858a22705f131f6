"""Answers with everything that a request says of itself."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        answer = {
            "id": request.request_id(),
            "correlation id": request.correlation_id(),
            "flags": request.flags(),
            "timeout": request.timeout(),
            "parameters": json.loads(request.parameters()),
            "outputs": sorted(request.requested_output_names()),
            "inputs": [
                [tensor.name(), tensor.shape(), str(tensor.as_numpy().dtype), tensor.is_cpu(), repr(tensor.as_numpy().tolist())]
                for tensor in request.inputs()
            ],
            "no input": pb_utils.get_input_tensor_by_name(request, "nobody"),
            "cancelled": request.is_cancelled(),
            "writable": all(tensor.as_numpy().flags.writeable for tensor in request.inputs()),
        }
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("OTHER", np.array([1], np.float32)),
                pb_utils.Tensor("UNKNOWN", np.array([2], np.float32)),
                pb_utils.Tensor("ANSWER", np.array([json.dumps(answer)], dtype=object)),
            ]
        )
