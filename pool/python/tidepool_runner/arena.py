"""Memory that this process and the server share, for tensors that are too large to go through the socket."""

import mmap
import os
import weakref

import numpy as np

SMALLEST_BLOCK_BYTES = 65536


class IncomingArena:
    """Where the server puts inputs. A block is given back when no array lies on it any more."""

    def __init__(self, file_descriptor, size, give_back):
        self._memory = mmap.mmap(file_descriptor, size)
        self._give_back = give_back

    def array(self, offset, size):
        data = np.frombuffer(self._memory, np.uint8, size, offset)
        weakref.finalize(data, self._give_back, offset).atexit = False
        return data


class OutgoingArena:
    """Where the server finds outputs. It says when it has read them."""

    def __init__(self, file_descriptor, size):
        self._file_descriptor, self._size = file_descriptor, size
        self._end = 0
        # Free blocks by size, and the size of each block by offset.
        self._free, self._sizes = {}, {}

    def store(self, payload):
        """Where the bytes lie now, or None when there is no room."""
        size = SMALLEST_BLOCK_BYTES
        while size < len(payload):
            size *= 2
        offset = self._block(size)
        if offset is None:
            return None
        try:
            written = 0
            view = memoryview(payload)
            while written < len(view):
                written += os.pwrite(self._file_descriptor, view[written:], offset + written)
        except OSError:
            self.free(offset)
            return None
        return offset

    def _block(self, size):
        free = self._free.get(size)
        if free:
            return free.pop()
        if self._end + size > self._size:
            return None
        offset, self._end = self._end, self._end + size
        self._sizes[offset] = size
        return offset

    def free(self, offset):
        self._free.setdefault(self._sizes[offset], []).append(offset)
