"""Answers with arrays of all kinds, whatever its config says of them."""

import numpy as np
import triton_python_backend_utils as pb_utils

ARRAYS = {
    "bytes": np.array([b"a", b"", b"\x00\xff"], dtype=object),
    "text": np.array(["h\u00e9", "", "x" * 300], dtype=object),
    "objects": np.array([1, 2.5, None, "a"], dtype=object),
    "fixed": np.array([b"ab", b"c"]),
    "grid of texts": np.array([["a", "b"], ["c", "d"]], dtype=object),
    "no texts": np.array([], dtype=object),
    "bool": np.array([True, False]),
    "int8": np.array([-1, 1], np.int8),
    "uint64": np.array([2**64 - 1], np.uint64),
    "int64": np.array([-(2**63)], np.int64),
    "fp64": np.array([1 / 3]),
    "fp16": np.array([0.5], np.float16),
    "scalar": np.array(4, np.int32),
    "empty": np.zeros((0, 3), np.float32),
    "columns": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "every second": np.arange(10, dtype=np.int32)[::2],
    "grid": np.arange(4, dtype=np.uint8).reshape(2, 1, 2),
}


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.answer(request)]) for request in requests]

    def answer(self, request):
        mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
        given = pb_utils.get_input_tensor_by_name(request, mode)
        if mode == "TEXTS":
            return pb_utils.Tensor("OUT", given.as_numpy()[::-1])
        if mode == "BF16":
            return pb_utils.Tensor.from_dlpack("OUT", given.to_dlpack())
        if mode == "BF16 as numpy":
            return pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(request, "BF16").as_numpy())
        if mode == "dlpack of texts":
            return pb_utils.Tensor.from_dlpack("OUT", pb_utils.get_input_tensor_by_name(request, "MODE").to_dlpack())
        return pb_utils.Tensor("OUT", ARRAYS[mode])
