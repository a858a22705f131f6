"""Adds a hundred, but not to three."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.one(request.inputs()[0].as_numpy()) for request in requests]

    def one(self, number):
        if number[0] == 3:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("not to three"))
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", number + 100)])
