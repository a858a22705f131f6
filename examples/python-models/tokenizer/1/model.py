import json
import re
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Gives the words of a text as their line numbers in vocabulary.txt; 0 stands for other words, and for no word."""

    def initialize(self, args):
        words = (Path(args["model_repository"]) / "vocabulary.txt").read_text().split()
        self.numbers = {word: number for number, word in enumerate(words, start=1)}
        config = json.loads(args["model_config"])
        (self.length,) = pb_utils.get_output_config_by_name(config, "token_ids")["dims"]

    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.tokens(request)]) for request in requests]

    def tokens(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy().reshape(-1)
        tokens = np.zeros((len(texts), self.length), np.int64)
        for row, text in zip(tokens, texts):
            words = re.findall(r"[\w']+", text.decode(errors="replace").lower())[: self.length]
            row[: len(words)] = [self.numbers.get(word, 0) for word in words]
        return pb_utils.Tensor("token_ids", tokens)
