"""Fails in the way that its input names."""

import numpy as np
import triton_python_backend_utils as pb_utils


class Custom(Exception):
    pass


def fail():
    raise Custom("from a function")


class TritonPythonModel:
    def execute(self, requests):
        mode = pb_utils.get_input_tensor_by_name(requests[0], "MODE").as_numpy()[0].decode()
        tensor = pb_utils.Tensor("ANSWER", np.array(["fine"], dtype=object))
        response = pb_utils.InferenceResponse([tensor])
        if mode in dir(pb_utils.TritonError) and mode.isupper():
            error = pb_utils.TritonError(f"the model's {mode}", getattr(pb_utils.TritonError, mode))
            return [pb_utils.InferenceResponse(error=error)]
        if mode == "default code":
            return [pb_utils.InferenceResponse(output_tensors=[tensor], error=pb_utils.TritonError("no code"))]
        if mode == "raise":
            raise ValueError("a bad value")
        if mode == "raise nothing":
            raise RuntimeError()
        if mode == "raise deep":
            fail()
        if mode == "raise model exception":
            raise pb_utils.TritonModelException("the contract's own")
        if mode == "divide":
            return 1 / 0
        if mode == "none":
            return None
        if mode == "too few":
            return []
        if mode == "too many":
            return [response, response]
        if mode == "tuple":
            return (response,)
        if mode == "no response":
            return ["a text"]
        if mode == "no tensor":
            return [pb_utils.InferenceResponse([None])]
        if mode == "empty name":
            return [pb_utils.InferenceResponse([pb_utils.Tensor("", np.zeros(1))])]
        if mode == "other output":
            return [pb_utils.InferenceResponse([pb_utils.Tensor("OTHER", np.zeros(1))])]
        if mode == "no output":
            return [pb_utils.InferenceResponse([])]
        return [response]
