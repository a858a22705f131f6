"""Tensors of other frameworks without a copy, by the DLPack convention."""

import ctypes

import numpy as np

from .errors import TritonModelException

# Device type and id of the main memory.
CPU = (1, 0)
UINT, BFLOAT, BOOL = 1, 4, 6
# Where `DLManagedTensor` has the kind of its elements' type, behind data, device and number of dimensions.
CODE_OFFSET = 20

get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def capsule(array):
    """Of an array whose elements numpy knows."""
    writable = array if array.flags.writeable else array.copy()
    return writable.__dlpack__()


def bfloat16_capsule(array):
    """Of bfloat16 numbers, which numpy holds as integers of that size."""
    made = capsule(array)
    code_of(made).value = BFLOAT
    return made


def code_of(made):
    return ctypes.c_uint8.from_address(get_pointer(made, b"dltensor") + CODE_OFFSET)


class Given:
    """A capsule as numpy takes one."""

    def __init__(self, made):
        self._made = made

    def __dlpack__(self, **_):
        return self._made

    def __dlpack_device__(self):
        return CPU


def array_of(tensor):
    """The array on a capsule or on a framework's tensor, and whether its elements are bfloat16."""
    made = tensor if type(tensor).__name__ == "PyCapsule" else exported(tensor)
    code = code_of(made)
    is_bfloat16 = code.value == BFLOAT
    if is_bfloat16:
        code.value = UINT
    array = np.from_dlpack(Given(made))
    if not array.flags.c_contiguous:
        raise TritonModelException(
            "DLPack tensor is not contiguous. Only contiguous DLPack tensors that are stored in C-Order are supported."
        )
    return array, is_bfloat16


def exported(tensor):
    if not hasattr(tensor, "__dlpack__") or not hasattr(tensor, "__dlpack_device__"):
        raise TritonModelException(
            "Provided tensor is not supported. Tensor must be a DLPack capsule "
            "or have `__dlpack__` and `__dlpack_device__` attributes"
        )
    device, _ = tensor.__dlpack_device__()
    if device == CPU[0]:
        return tensor.__dlpack__()
    raise TritonModelException(f"DLDevice type {int(device)} is not support by Python backend.")
