"""A named array, on its way between numpy and the bytes of the protocol."""

import struct

import numpy as np

from . import dlpack
from .datatypes import DATATYPES, NUMBERS, NUMPY, datatype_of
from .errors import TritonModelException

LENGTH = struct.Struct("<I")


class Tensor:
    """An input or output of a model."""

    __slots__ = ("_name", "_datatype", "_shape", "_array", "_bytes", "__weakref__")

    def __init__(self, name, numpy_array):
        if not isinstance(name, str) or not isinstance(numpy_array, np.ndarray):
            raise TypeError("Tensor: expected a name and a numpy array")
        if name == "":
            raise TritonModelException("Tensor name cannot be an empty string.")
        dtype = numpy_array.dtype
        self._name, self._shape, self._bytes = name, numpy_array.shape, None
        if dtype.kind in "OSU":
            self._datatype, self._array = "BYTES", numpy_array
            return
        datatype = DATATYPES.get(dtype) or datatype_of(dtype)
        if datatype is None:
            raise TritonModelException(f"tensor '{name}': numpy's type '{dtype}' has no datatype in the protocol")
        self._datatype = datatype
        self._array = numpy_array if dtype.isnative else numpy_array.astype(NUMPY[datatype])

    @classmethod
    def received(cls, name, datatype, shape, data):
        """Lies on `data`, an array of bytes."""
        tensor = cls.__new__(cls)
        tensor._name, tensor._datatype, tensor._shape = name, datatype, shape
        tensor._array, tensor._bytes = None, data
        dtype = NUMPY.get(datatype)
        if dtype is not None:
            tensor._array = data.view(dtype).reshape(shape)
        return tensor

    def name(self):
        return self._name

    def shape(self):
        return list(self._shape)

    def triton_dtype(self):
        return NUMBERS[self._datatype]

    def is_cpu(self):
        return True

    def as_numpy(self):
        """Of numbers a view, on which a model may write."""
        if self._array is not None:
            return self._array
        if self._datatype == "BF16":
            raise TritonModelException(
                "Tensor dtype is BF16 and cannot be converted to NumPy. Use to_dlpack() and from_dlpack() instead."
            )
        self._array = elements(memoryview(self._bytes)).reshape(self._shape)
        return self._array

    def to_dlpack(self):
        if self._datatype == "BYTES":
            raise TritonModelException("DLPack does not have support for string tensors.")
        if self._datatype == "BF16":
            return dlpack.bfloat16_capsule(self._bytes.view(np.uint16).reshape(self._shape))
        return dlpack.capsule(self._array)

    def __dlpack__(self, stream=None, **_):
        return self.to_dlpack()

    def __dlpack_device__(self):
        return dlpack.CPU

    @staticmethod
    def from_dlpack(name, tensor):
        array, is_bfloat16 = dlpack.array_of(tensor)
        if not is_bfloat16:
            return Tensor(name, array)
        made = Tensor(name, array)
        return Tensor.received(name, "BF16", made._shape, array.reshape(-1).view(np.uint8))

    def encoded(self):
        """Head and bytes for the wire."""
        if self._bytes is None:
            array = self._array
            if self._datatype == "BYTES":
                self._bytes = joined(array)
            else:
                self._bytes = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return [self._name, self._datatype, self._shape, len(self._bytes)], self._bytes


def elements(data):
    """Strings that each have their length before them, as an array of bytes objects."""
    found = []
    offset, end = 0, len(data)
    while offset < end:
        (length,) = LENGTH.unpack_from(data, offset)
        offset += LENGTH.size
        found.append(bytes(data[offset : offset + length]))
        offset += length
    array = np.empty(len(found), np.object_)
    array[:] = found
    return array


def joined(array):
    """The other way round; what is not bytes is written as text."""
    parts = []
    for element in array.ravel().tolist():
        text = element if isinstance(element, bytes) else str(element).encode()
        parts.append(LENGTH.pack(len(text)))
        parts.append(text)
    return b"".join(parts)
