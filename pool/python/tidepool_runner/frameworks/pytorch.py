"""Runs TorchScript."""

import contextlib

import numpy as np

from ..errors import ContractError
from .batch import BFLOAT16
from .framework_model import FrameworkModel, failure, framework

torch = framework("torch", "PyTorch", "pip install torch, or apt-get install python3-torch for Debian's python3")

TENSOR, LIST, DICT = "TensorType", "ListType", "DictType"


class TritonPythonModel(FrameworkModel):
    """A TorchScript module."""

    def start(self):
        settings = self.settings
        self._set_up_torch()
        self._device = torch.device("cpu" if settings.gpu is None else f"cuda:{settings.gpu}")
        if settings.gpu is not None and not torch.cuda.is_available():
            raise ContractError(
                f"the instance is to run on GPU {settings.gpu}, and this PyTorch can use none: install a build of "
                "PyTorch with CUDA, or have instance_group say KIND_CPU"
            )
        try:
            self._module = torch.jit.load(settings.file, map_location=self._device).eval()
            arguments = self._module.forward.schema.arguments[1:]
        except (RuntimeError, ValueError, AttributeError) as error:
            subject = f"'{settings.file_name}' is no TorchScript that PyTorch {torch.__version__} can read"
            raise failure(subject, error) from error
        names = settings.input_names()
        self._takes_dictionary = [kind(argument) for argument in arguments] == [DICT]
        self._arguments = {} if self._takes_dictionary else argument_names(arguments, names, settings.model_name)
        self._outputs = list(settings.output_datatypes())
        self._output_places = indices(self._outputs) or {name: place for place, name in enumerate(self._outputs)}

    def _set_up_torch(self):
        settings = self.settings
        torch.set_num_threads(settings.threads("NUM_THREADS", "INTRA_OP_THREAD_COUNT"))
        inter_op = settings.number(("NUM_INTEROP_THREADS", "INTER_OP_THREAD_COUNT"), 0)
        if inter_op > 0:
            torch.set_num_interop_threads(inter_op)
        torch.backends.cudnn.enabled = not settings.flag("DISABLE_CUDNN")
        if not settings.flag("ENABLE_JIT_EXECUTOR", True):
            torch._C._jit_set_profiling_executor(False)
        if not settings.flag("ENABLE_JIT_PROFILING", True):
            torch._C._jit_set_profiling_mode(False)
        self._inference = torch.inference_mode if settings.flag("INFERENCE_MODE", True) else torch.no_grad
        self._optimized = not settings.flag("DISABLE_OPTIMIZED_EXECUTION")
        self._cleans_cache = settings.flag("ENABLE_CACHE_CLEANING")

    def run(self, inputs):
        given = {name: self._received(name, array) for name, array in inputs.items()}
        optimized = contextlib.nullcontext() if self._optimized else torch.jit.optimized_execution(False)
        try:
            with self._inference(), optimized:
                if self._takes_dictionary:
                    result = self._module(given)
                else:
                    result = self._module(**{self._arguments[name]: value for name, value in given.items()})
            return {name: self._array(name, value) for name, value in self._named(result).items()}
        except RuntimeError as error:
            raise failure("PyTorch execute failure", error) from error
        finally:
            if self._cleans_cache and self._device.type == "cuda":
                torch.cuda.empty_cache()

    def _received(self, name, array):
        if array.dtype == np.object_:
            return [element.decode() for element in array.reshape(-1)]
        if array.dtype == BFLOAT16:
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16).to(self._device)
        try:
            return torch.from_numpy(array).to(self._device)
        except TypeError as error:
            raise failure(f"input '{name}'", error) from error

    def _named(self, result):
        """The outputs that the config names, out of whatever the module returns."""
        if isinstance(result, dict):
            if all(name in result for name in self._outputs):
                return {name: result[name] for name in self._outputs}
            result = list(result.values())
        elif isinstance(result, torch.Tensor) or is_strings(result):
            result = [result]
        if not isinstance(result, (list, tuple)):
            raise ContractError(f"the model returned {type(result).__name__}, expected tensors")
        for name, place in self._output_places.items():
            if place >= len(result):
                raise ContractError(
                    f"output '{name}' refers to an output index which doesn't exist: "
                    f"the model has {len(result)} outputs"
                )
        return {name: result[place] for name, place in self._output_places.items()}

    def _array(self, name, value):
        if is_strings(value):
            return np.array([element.encode() for element in value], np.object_)
        if not isinstance(value, torch.Tensor):
            raise ContractError(f"output '{name}' must be of type Tensor or List[str]")
        if value.dim() == 0:
            raise ContractError(f"output '{name}' is a scalar which is not supported.")
        value = value.detach().cpu().contiguous()
        return value.view(torch.int16).numpy().view(BFLOAT16) if value.dtype == torch.bfloat16 else value.numpy()


def kind(argument):
    return argument.type.kind()


def is_strings(value):
    return isinstance(value, list) and len(value) > 0 and all(isinstance(element, str) for element in value)


def indices(names):
    """The numbers that names of the form `<name>__<index>` end with; None when one of them has another form."""
    found = {name: name.partition("__")[2] for name in names}
    return {name: int(index) for name, index in found.items()} if all(map(str.isdecimal, found.values())) else None


def argument_names(arguments, names, model_name):
    """The argument of `forward` for each input: by its name, else by the index in its name, else by its place."""
    allowed = [argument.name for argument in arguments]
    for argument in arguments:
        if kind(argument) not in (TENSOR, LIST, "OptionalType"):
            raise ContractError(
                f"An input of type '{argument.type}' was detected in the model. Only a single input of type "
                "Dict(str, Tensor) or input(s) of type Tensor are supported."
            )
    needed = [argument.name for argument in arguments if not argument.has_default_value()]
    if all(name in allowed for name in names):
        chosen = {name: name for name in names}
    else:
        places = indices(names) or {name: place for place, name in enumerate(names)}
        chosen = {name: allowed[place] for name, place in places.items() if place < len(allowed)}
    if len(chosen) < len(names) or not set(needed) <= set(chosen.values()):
        raise ContractError(
            f"unable to load model '{model_name}', configuration expects {len(names)} inputs, "
            f"model provides {len(arguments)}"
        )
    return chosen
