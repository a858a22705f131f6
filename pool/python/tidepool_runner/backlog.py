"""Which responses are on their way to clients, so that no sender goes on while too many are."""

import threading

# A response's, beside its tensors.
OVERHEAD_BYTES = 512
# A request whose client has so much to read waits; all requests of the process wait when there is so much of them together.
MOST_BYTES_OF_ONE = 8 * 2**20
MOST_BYTES = 64 * 2**20


class Backlog:
    """Bytes that are sent and, as far as the server has told, not read yet."""

    def __init__(self):
        self._lock = threading.Lock()
        self._of_request = {}
        self._total = 0

    def sent(self, number, size):
        with self._lock:
            self._of_request[number] = self._of_request.get(number, 0) + size
            self._total += size

    def read(self, number, size):
        with self._lock:
            self._total -= size
            left = self._of_request[number] - size
            if left > 0:
                self._of_request[number] = left
            else:
                del self._of_request[number]

    def is_full(self, number):
        return self._total > MOST_BYTES or self._of_request.get(number, 0) > MOST_BYTES_OF_ONE


def response_bytes(tensors):
    """What a response counts for, by the heads of its tensors."""
    return OVERHEAD_BYTES + sum(size for _, _, _, size, *_ in tensors)
