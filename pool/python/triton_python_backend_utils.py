"""What a model imports: everything of the contract between a Python model and its server."""

import numpy as np
from tidepool_runner.calls import is_model_ready, load_model, unload_model
from tidepool_runner.datatypes import NUMBERS, NUMPY, datatype_of
from tidepool_runner.errors import TritonError, TritonModelException
from tidepool_runner.logger import Logger
from tidepool_runner.metrics import MetricFamily
from tidepool_runner.model_config import ModelConfig
from tidepool_runner.requests import InferenceRequest, PreferredMemory
from tidepool_runner.responses import InferenceResponse
from tidepool_runner.tensors import Tensor, elements, joined

__all__ = [
    "InferenceRequest", "InferenceResponse", "Logger", "MetricFamily", "ModelConfig", "PreferredMemory", "Tensor",
    "TritonError", "TritonModelException", "deserialize_bytes_tensor", "get_input_config_by_name",
    "get_input_tensor_by_name", "get_model_dir", "get_output_config_by_name", "get_output_tensor_by_name",
    "is_model_ready", "load_model", "numpy_to_triton_type", "serialize_byte_tensor", "triton_string_to_numpy",
    "triton_to_numpy_type", "unload_model", "using_decoupled_model_transaction_policy",
]  # fmt: skip

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_CPU = "GPU", "CPU"

TRITON_STRING_TO_NUMPY = {f"TYPE_{datatype}": dtype.type for datatype, dtype in NUMPY.items()}
TRITON_STRING_TO_NUMPY["TYPE_BOOL"] = bool
TRITON_STRING_TO_NUMPY["TYPE_STRING"] = np.object_

# Set by the runner.
model_directory = ""


def get_model_dir():
    """The folder of the version that runs."""
    return model_directory


def named(tensors, name):
    return next((tensor for tensor in tensors if tensor.name() == name), None)


def get_input_tensor_by_name(inference_request, name):
    """The input of that name, or None."""
    return named(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response, name):
    """The output of that name, or None."""
    return named(inference_response.output_tensors(), name)


def configured(tensors, name):
    return next((tensor for tensor in tensors if tensor["name"] == name), None)


def get_input_config_by_name(model_config, name):
    """What the config says of the input of that name, or None."""
    return configured(model_config.get("input", ()), name)


def get_output_config_by_name(model_config, name):
    """What the config says of the output of that name, or None."""
    return configured(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config):
    """Whether the model answers a request with any number of responses."""
    return model_config.get("model_transaction_policy", {}).get("decoupled", False)


def triton_string_to_numpy(triton_type_string):
    """numpy's type for a config's `TYPE_…`."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type):
    """numpy's type for the number of a config's data type, or None."""
    name = next((name for name, number in NUMBERS.items() if number == data_type), None)
    if name == "BYTES":
        return np.object_
    return NUMPY[name].type if name in NUMPY else None


def numpy_to_triton_type(data_type):
    """The number of a config's data type for a type of numpy, or None."""
    dtype = np.dtype(data_type)
    return NUMBERS["BYTES"] if dtype.kind in "OS" else NUMBERS.get(datatype_of(dtype))


def serialize_byte_tensor(input_tensor):
    """The elements, each behind its length."""
    return joined(input_tensor) if input_tensor.size > 0 else ()


def deserialize_bytes_tensor(encoded_tensor):
    """The elements of a tensor that `serialize_byte_tensor` made, in one dimension."""
    return elements(memoryview(encoded_tensor))
