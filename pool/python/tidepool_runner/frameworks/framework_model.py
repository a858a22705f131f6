"""What a framework's model has to do to be served: the rest of a Python model's contract is here."""

import importlib
import json
import os

import triton_python_backend_utils as pb_utils

from ..errors import ContractError
from .batch import datatype_of, merged, parts, tensor_of
from .settings import Settings


class FrameworkModel:
    """A model file run by a framework. Gets a batch of requests at once, unlike a model of a user's own."""

    def __init__(self):
        self.settings = None
        self._batching, self._datatypes = False, {}

    @classmethod
    def describe(cls, model_config):
        """Inputs and outputs as the file itself tells them, or None where it does not."""
        return cls.tensors(Settings(json.loads(model_config)))

    @classmethod
    def tensors(cls, settings):
        """`describe` of a framework whose files tell."""
        return None

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.settings = Settings(config, args)
        self._batching = config["max_batch_size"] > 0
        self._datatypes = self.settings.output_datatypes()
        self.start()

    def start(self):
        """Opens the file."""
        raise NotImplementedError

    def run(self, inputs):
        """Outputs by name for inputs by name, both arrays; a ContractError tells a client what went wrong."""
        raise NotImplementedError

    def execute(self, requests):
        responses = [None] * len(requests)
        for places in together(requests) if self._batching else [[place] for place in range(len(requests))]:
            for place, response in zip(places, self._answers([requests[place] for place in places])):
                responses[place] = response
        return responses

    def _answers(self, requests):
        inputs, sizes = merged([request.inputs() for request in requests])
        outputs = {name: array for name, array in self.run(inputs).items() if name in self._datatypes}
        for name, array in outputs.items():
            self._check(name, array, sum(sizes))
        by_request = [parts(array, sizes) for array in outputs.values()]
        return [
            pb_utils.InferenceResponse([tensor_of(name, part[place]) for name, part in zip(outputs, by_request)])
            for place in range(len(requests))
        ]

    def _check(self, name, array, size):
        provided, stated = datatype_of(array), self._datatypes[name]
        if provided != stated:
            raise ContractError(
                f"configuration expects datatype {stated} for output '{name}', model provides {provided or array.dtype}"
            )
        if self._batching and (array.ndim == 0 or array.shape[0] != size):
            raise ContractError(
                f"output '{name}' has the shape {list(array.shape)}, "
                f"expected its first dimension to be the batch of {size}"
            )


def together(requests):
    """The places of those requests that can be one batch: all but the first dimension of their inputs agree."""
    if len(requests) == 1:
        return [[0]]
    alike = {}
    for place, request in enumerate(requests):
        shapes = frozenset((tensor.name(), *tensor.shape()[1:]) for tensor in request.inputs())
        alike.setdefault(shapes, []).append(place)
    return list(alike.values())


def framework(module, title, install):
    """The framework itself, which is whatever the Python of the model has."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ContractError(
            f"{title} is not installed in the Python that runs the model: {install}; --python, TIDEPOOL_PYTHON, and "
            "the parameter EXECUTION_ENV_PATH of a model choose another one"
        ) from error


def failure(subject, error):
    """What a framework complains of, without the folders of this machine."""
    text = (str(error).strip() or type(error).__name__).replace(pb_utils.get_model_dir() + os.sep, "")
    return ContractError(f"{subject}: {text}")
