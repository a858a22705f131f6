from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Gives the best class of each item by its name, which is the line of that number in labels.txt."""

    def initialize(self, args):
        lines = (Path(args["model_repository"]) / "labels.txt").read_text().split()
        self.labels = np.array(lines, dtype=object)

    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.best(request)]) for request in requests]

    def best(self, request):
        logits = pb_utils.get_input_tensor_by_name(request, "logits").as_numpy()
        return pb_utils.Tensor("class_label", self.labels[logits.argmax(axis=1)].reshape(-1, 1))
