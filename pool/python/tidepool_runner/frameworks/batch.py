"""Arrays of several requests as one, and the other way round."""

import numpy as np

from ..datatypes import DATATYPES, NUMBERS
from ..dlpack import array_of
from ..tensors import Tensor

# numpy has no such type: the name tells it from integers of that size.
BFLOAT16 = np.dtype([("bfloat16", "<u2")])


def array_of_tensor(tensor):
    """Elements of strings are bytes objects."""
    if tensor.triton_dtype() == NUMBERS["BF16"]:
        return array_of(tensor)[0].view(BFLOAT16)
    return tensor.as_numpy()


def tensor_of(name, array):
    """The other way round."""
    if array.dtype == BFLOAT16:
        return Tensor.received(name, "BF16", array.shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return Tensor(name, array)


def datatype_of(array):
    """As a config calls it; None for what the protocol has no name for."""
    if array.dtype.kind in "OSU":
        return "TYPE_STRING"
    datatype = "BF16" if array.dtype == BFLOAT16 else DATATYPES.get(array.dtype)
    return datatype and f"TYPE_{datatype}"


def merged(requests):
    """Inputs of requests, in one array for each name, and the batch that each request has in them."""
    first, *others = requests
    if not others:
        inputs = {tensor.name(): array_of_tensor(tensor) for tensor in first}
        return inputs, [next((array.shape[0] for array in inputs.values() if array.ndim > 0), 1)]
    arrays = {tensor.name(): [] for tensor in first}
    for tensors in requests:
        for tensor in tensors:
            arrays[tensor.name()].append(array_of_tensor(tensor))
    sizes = [len(array) for array in next(iter(arrays.values()))]
    return {name: np.concatenate(own) for name, own in arrays.items()}, sizes


def parts(array, sizes):
    """The rows of each request."""
    if len(sizes) == 1:
        return [array]
    return np.split(array, np.cumsum(sizes)[:-1])
