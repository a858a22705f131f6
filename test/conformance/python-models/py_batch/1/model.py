"""Says with how many other requests each one came, and how many rows it has. A negative number fails its request, NaN all."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request, len(requests)) for request in requests]

    def answer(self, request, together):
        given = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
        if np.isnan(given).any():
            raise ValueError("not a number")
        if (given < 0).any():
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("negative", pb_utils.TritonError.INVALID_ARG))
        batch = np.array([[together, len(given)]] * len(given), np.int32)
        given += 1
        return pb_utils.InferenceResponse([pb_utils.Tensor("BATCH", batch), pb_utils.Tensor("OUTPUT0", given)])
