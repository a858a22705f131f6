"""Loads and unloads models, and asks whether they are ready."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        mode, model = (pb_utils.get_input_tensor_by_name(request, name).as_numpy()[0].decode() for name in ("MODE", "MODEL"))
        try:
            answer = self.do(mode, model)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([json.dumps(answer)], dtype=object))])

    def do(self, mode, model):
        if mode == "load":
            return pb_utils.load_model(model_name=model)
        if mode == "unload":
            return pb_utils.unload_model(model)
        if mode == "ready":
            return [pb_utils.is_model_ready(model), pb_utils.is_model_ready(model_name=model, model_version="1")]
        if mode == "bad files":
            return pb_utils.load_model(model, files=["a"])
        return None
