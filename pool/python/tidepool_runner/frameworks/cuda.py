"""The driver's own interface to a GPU, so that a plan needs nothing beside TensorRT and the driver."""

import ctypes

from ..errors import ContractError

LIBRARY = "libcuda.so.1"


class Cuda:
    """One GPU: its memory, and a stream of work on it."""

    def __init__(self, device):
        self._driver = driver()
        self._context, self._stream = ctypes.c_void_p(), ctypes.c_void_p()
        self._buffers = {}
        number = ctypes.c_int()
        self._do("cuDeviceGet", ctypes.byref(number), device)
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), number)
        self.use()
        self._do("cuStreamCreate", ctypes.byref(self._stream), 0)

    @staticmethod
    def require(what):
        """Raises when this machine has no GPU."""
        count = ctypes.c_int()
        library = driver()
        if library is None or library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
            raise ContractError(
                f"{what} needs an NVIDIA GPU and its driver ({LIBRARY}), which are not to be found here, and the "
                "package tensorrt in the Python that runs the model: pip install tensorrt"
            )

    @property
    def stream(self):
        return self._stream.value

    def use(self):
        """Has what follows happen on this GPU."""
        self._do("cuCtxSetCurrent", self._context)

    def buffer(self, name, size):
        """The address of memory on the GPU that is kept under that name."""
        held, address = self._buffers.get(name, (0, None))
        if address is None or held < size:
            if address is not None:
                self._do("cuMemFree_v2", ctypes.c_uint64(address))
            made = ctypes.c_uint64()
            self._do("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(max(1, size)))
            address = made.value
            self._buffers[name] = (size, address)
        return address

    def to_gpu(self, address, array):
        there, here, size = ctypes.c_uint64(address), ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        self._do("cuMemcpyHtoDAsync_v2", there, here, size, self._stream)

    def from_gpu(self, array, address):
        there, here, size = ctypes.c_uint64(address), ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
        self._do("cuMemcpyDtoHAsync_v2", here, there, size, self._stream)

    def synchronize(self):
        self._do("cuStreamSynchronize", self._stream)

    def _do(self, function, *arguments):
        code = getattr(self._driver, function)(*arguments)
        if code != 0:
            name = ctypes.c_char_p()
            self._driver.cuGetErrorName(code, ctypes.byref(name))
            raise ContractError(f"CUDA: {function} failed: {(name.value or b'').decode() or code}")


def driver():
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None
