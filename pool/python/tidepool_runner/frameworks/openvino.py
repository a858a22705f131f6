"""Runs models of OpenVINO."""

import numpy as np

from ..errors import ContractError
from .batch import BFLOAT16
from .framework_model import FrameworkModel, failure, framework

ov = framework("openvino", "OpenVINO", "pip install openvino")

DATATYPES = {
    "boolean": "BOOL", "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "u64": "UINT64", "i8": "INT8", "i16": "INT16",
    "i32": "INT32", "i64": "INT64", "f16": "FP16", "bf16": "BF16", "f32": "FP32", "f64": "FP64", "string": "BYTES",
}  # fmt: skip


class TritonPythonModel(FrameworkModel):
    """A model of OpenVINO's own format, or of another one that it reads."""

    @classmethod
    def tensors(cls, settings):
        model = read(settings)
        sides = {"inputs": model.inputs, "outputs": model.outputs}
        return {side: [described(port) for port in ports] for side, ports in sides.items()}

    def start(self):
        settings = self.settings
        device = settings.text("TARGET_DEVICE", "CPU")
        try:
            compiled = core(settings).compile_model(read(settings), device, properties(settings, device))
        except RuntimeError as error:
            raise failure(f"OpenVINO cannot compile '{settings.file_name}' for {device}", error) from error
        self._request = compiled.create_infer_request()
        self._outputs = {name_of(port): place for place, port in enumerate(compiled.outputs)}

    def run(self, inputs):
        try:
            self._request.infer({name: given(array) for name, array in inputs.items()})
        except (RuntimeError, TypeError) as error:
            raise failure("OpenVINO execute failure", error) from error
        return {name: self._array(place) for name, place in self._outputs.items()}

    def _array(self, place):
        tensor = self._request.get_output_tensor(place)
        if tensor.element_type == ov.Type.string:
            return np.array([text.encode() for text in tensor.str_data.reshape(-1)], np.object_).reshape(tensor.shape)
        # The next run writes on the tensor.
        array = tensor.data.copy()
        return array.view(np.uint16).view(BFLOAT16) if tensor.element_type == ov.Type.bf16 else array


def core(settings):
    made = ov.Core()
    extension = settings.text("CPU_EXTENSION_PATH")
    if extension:
        made.add_extension(extension)
    return made


def read(settings):
    """The model, with the shapes that the config asks for."""
    try:
        model = core(settings).read_model(settings.file)
        shapes = wanted_shapes(model, settings)
        if shapes:
            model.reshape(shapes)
        return model
    except RuntimeError as error:
        raise failure(f"OpenVINO cannot read '{settings.file_name}'", error) from error


def wanted_shapes(model, settings):
    """New shapes of inputs: those of the config where it says so, else any batch where it asks for batches."""
    batching = settings.config["max_batch_size"] > 0
    if settings.flag("RESHAPE_IO_LAYERS"):
        stated = settings.config.get("input", ())
        return {tensor["name"]: [-1] * batching + list(map(int, tensor["dims"])) for tensor in stated}
    fixed = batching and [port for port in model.inputs if has_fixed_batch(port.partial_shape)]
    return {port: [-1, *dimensions(port.partial_shape)[1:]] for port in fixed or ()}


def has_fixed_batch(shape):
    return shape.rank.is_static and len(shape) > 0 and shape[0].is_static


def dimensions(shape):
    """-1 is variable; none at all where the model leaves their number open."""
    if shape.rank.is_dynamic:
        return []
    return [dimension.get_length() if dimension.is_static else -1 for dimension in shape]


def described(port):
    element_type = port.element_type.get_type_name()
    if element_type not in DATATYPES:
        raise ContractError(f"tensor '{name_of(port)}' is of the type {element_type}, which the protocol does not have")
    return {"name": name_of(port), "datatype": DATATYPES[element_type], "shape": dimensions(port.partial_shape)}


def name_of(port):
    """A tensor without a name of its own has that of its node."""
    return port.any_name if port.names else port.node.friendly_name


def properties(settings, device):
    """What the parameters say, in OpenVINO's own words."""
    names = ("PERFORMANCE_HINT", "NUM_STREAMS", "COMPILATION_NUM_THREADS", "INFERENCE_NUM_THREADS")
    stated = {name: settings.text(name) for name in names if settings.text(name)}
    if settings.flag("HINT_BF16"):
        stated["INFERENCE_PRECISION_HINT"] = "bf16"
    return {"INFERENCE_NUM_THREADS": settings.threads(), **stated} if device == "CPU" else stated


def given(array):
    if array.dtype == BFLOAT16:
        return ov.Tensor(array.view(np.uint16), array.shape, ov.Type.bf16)
    if array.dtype == np.object_:
        return ov.Tensor(np.array([text.decode() for text in array.reshape(-1)], np.str_).reshape(array.shape))
    return array
