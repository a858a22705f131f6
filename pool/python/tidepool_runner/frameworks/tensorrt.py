"""Runs plans of TensorRT, on NVIDIA's GPUs."""

import numpy as np

from ..errors import ContractError
from .batch import BFLOAT16
from .cuda import Cuda
from .framework_model import FrameworkModel, framework

Cuda.require("a TensorRT plan")
trt = framework("tensorrt", "TensorRT", "pip install tensorrt, in the version that the plan was built with")

DATATYPES = {
    "FLOAT": ("FP32", np.float32), "HALF": ("FP16", np.float16), "BF16": ("BF16", BFLOAT16),
    "INT8": ("INT8", np.int8), "INT32": ("INT32", np.int32), "INT64": ("INT64", np.int64),
    "UINT8": ("UINT8", np.uint8), "BOOL": ("BOOL", np.bool_),
}  # fmt: skip
LOGGER = trt.Logger(trt.Logger.WARNING)


class TritonPythonModel(FrameworkModel):
    """An engine with one context and a stream of its own."""

    @classmethod
    def tensors(cls, settings):
        engine = read(settings, Cuda(0))
        sides = {"inputs": trt.TensorIOMode.INPUT, "outputs": trt.TensorIOMode.OUTPUT}
        return {side: [described(engine, name) for name in names_of(engine, mode)] for side, mode in sides.items()}

    def start(self):
        settings = self.settings
        self._cuda = Cuda(settings.gpu or 0)
        self._engine = read(settings, self._cuda)
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise ContractError(f"TensorRT has no context for '{settings.file_name}': the GPU may lack memory")
        self._inputs = names_of(self._engine, trt.TensorIOMode.INPUT)
        self._outputs = names_of(self._engine, trt.TensorIOMode.OUTPUT)

    def run(self, inputs):
        context, cuda = self._context, self._cuda
        given = {name: np.ascontiguousarray(inputs[name]) for name in self._inputs}
        for name, array in given.items():
            if not context.set_input_shape(name, array.shape):
                raise ContractError(f"input '{name}': no profile of the plan takes the shape {list(array.shape)}")
            cuda.to_gpu(self._address(name, array.nbytes), array)
        outputs = {name: self._empty(name) for name in self._outputs}
        if not context.execute_async_v3(cuda.stream):
            raise ContractError("TensorRT execute failure")
        for name, array in outputs.items():
            cuda.from_gpu(array, self._address(name, array.nbytes))
        cuda.synchronize()
        return outputs

    def _address(self, name, size):
        address = self._cuda.buffer(name, size)
        self._context.set_tensor_address(name, address)
        return address

    def _empty(self, name):
        """An array for an output, and a place on the GPU."""
        shape = tuple(self._context.get_tensor_shape(name))
        if min(shape, default=0) < 0:
            raise ContractError(f"output '{name}' has a shape that depends on the data, which cannot be served")
        array = np.empty(shape, DATATYPES[self._engine.get_tensor_dtype(name).name][1])
        self._address(name, array.nbytes)
        return array


def read(settings, cuda):
    """`cuda` is there because an engine lies on the GPU that is in use when it is made."""
    cuda.use()
    with open(settings.file, "rb") as file:
        engine = trt.Runtime(LOGGER).deserialize_cuda_engine(file.read())
    if engine is None:
        raise ContractError(
            f"'{settings.file_name}' is no plan that TensorRT {trt.__version__} can read on this GPU: it has to be "
            "built by the same version, for the same kind of GPU"
        )
    return engine


def names_of(engine, mode):
    names = (engine.get_tensor_name(index) for index in range(engine.num_io_tensors))
    return [name for name in names if engine.get_tensor_mode(name) == mode]


def described(engine, name):
    dtype = engine.get_tensor_dtype(name).name
    if dtype not in DATATYPES:
        raise ContractError(f"tensor '{name}' is of the type {dtype}, which the protocol does not have")
    return {"name": name, "datatype": DATATYPES[dtype][0], "shape": list(engine.get_tensor_shape(name))}
