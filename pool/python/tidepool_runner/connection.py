"""What is said between a model's process and the server, and who is told of it."""

import collections
import itertools
import threading

from .arena import IncomingArena, OutgoingArena
from .backlog import Backlog
from .tensors import Tensor
from .wire import ALIGNMENT, Wire

# From here on shared memory is faster than the socket.
SHARED_BYTES = 32768
# What one frame may carry: the server holds it in one piece.
MOST_FRAME_BYTES = 2**31 - 1


class Connection:
    """The process's only way to the server."""

    def __init__(self, requests, answers):
        """Both are file descriptors."""
        self._wire = Wire(requests, answers, self._handle)
        self._commands = collections.deque()
        self._numbers = itertools.count(1)
        self._answers = {}
        self._cancelled = set()
        self._backlog = Backlog()
        self._storing = threading.Lock()
        self._incoming = self._outgoing = None

    def share(self, incoming, outgoing, size):
        """Uses shared memory, too. Both are file descriptors."""
        self._incoming = IncomingArena(incoming, size, lambda offset: self._wire.note(["free", offset]))
        self._outgoing = OutgoingArena(outgoing, size)

    def next_command(self):
        """What to do next: a head, and where its tensors lie."""
        if not self._commands:
            self._wire.wait(lambda: self._commands)
        return self._commands.popleft()

    def _handle(self, head, buffer, offset):
        kind = head[0]
        if kind == "answer":
            self._answered(head, buffer, offset)
        elif kind == "read":
            self._backlog.read(head[1], head[2])
        elif kind == "cancel":
            self._cancelled.add(head[1])
        elif kind == "free":
            for freed in head[1]:
                self._outgoing.free(freed)
        else:
            self._commands.append((head, buffer, offset))

    def tensors(self, heads, buffer, offset):
        """The tensors of a request or a response, and where the next ones begin."""
        tensors = []
        for name, datatype, shape, size, *shared in heads:
            if shared:
                data = self._incoming.array(shared[0], size)
            else:
                data = buffer[offset : offset + size]
                offset += size + -size % ALIGNMENT
            tensors.append(Tensor.received(name, datatype, shape, data))
        return tensors, offset

    def encode(self, tensors):
        """Heads and bytes of tensors; large ones are put into shared memory."""
        heads, payloads = [], []
        for tensor in tensors:
            head, payload = tensor.encoded()
            shared = self._shared(payload)
            if shared is None:
                payloads.append(payload)
                heads.append(head)
            else:
                heads.append([*head, shared])
        return heads, payloads

    def _shared(self, payload):
        if len(payload) < SHARED_BYTES or self._outgoing is None:
            return None
        with self._storing:
            shared = self._outgoing.store(payload)
        if shared is None:
            # The server may have said meanwhile what it has read.
            self._wire.poll()
            with self._storing:
                shared = self._outgoing.store(payload)
        return shared

    def send(self, head, payloads=()):
        if sum(map(len, payloads)) > MOST_FRAME_BYTES:
            raise ValueError(f"tensors of more than {MOST_FRAME_BYTES} bytes were given at once")
        self._wire.send(head, payloads)

    def send_response(self, number, flags, encoded, payloads, size):
        """`size` counts until the server has told that it is read; 0 is never counted."""
        if size:
            self._backlog.sent(number, size)
        self.send(["response", number, flags, encoded, size], payloads)

    def wait_for_reader(self, number):
        """Returns when the client of that request has read enough, or wants no more."""
        if self._backlog.is_full(number):
            self._wire.wait(lambda: number in self._cancelled or not self._backlog.is_full(number))

    def note(self, head):
        """Like `send`, from where no lock may be waited for: the end of an object."""
        self._wire.note(head)

    def is_cancelled(self, number):
        self._wire.poll()
        return number in self._cancelled

    def forget(self, number):
        """The request is answered."""
        self._cancelled.discard(number)

    def open_call(self, on_answer=None):
        """A number for a question to the server. `on_answer` is told of answers as they come, and must not block."""
        number = next(self._numbers)
        self._answers[number] = on_answer or collections.deque()
        return number

    def _answered(self, head, buffer, offset):
        place = self._answers.get(head[1])
        if place is None:
            return
        if isinstance(place, collections.deque):
            place.append((head, buffer, offset))
        else:
            place((head, buffer, offset))

    def next_answer(self, number):
        place = self._answers[number]
        self._wire.wait(lambda: place)
        return place.popleft()

    def close_call(self, number):
        self._answers.pop(number, None)

    def ask(self, *question):
        """Sends a question and gives its only answer."""
        number = self.open_call()
        try:
            self.send([question[0], number, *question[1:]])
            head, _, _ = self.next_answer(number)
            return head[2:]
        finally:
            self.close_call(number)

    def wait(self, done):
        self._wire.wait(done)
