"""The sockets from and to the server: frames of a JSON head and raw bytes, read and written by any thread."""

import collections
import json
import socket
import struct
import threading

import numpy as np

HEADER = struct.Struct("<II")
ALIGNMENT = 8
READ_BYTES = 65536


class ServerGone(Exception):
    """The other end of a socket is closed."""


class Wire:
    """One end of the sockets.

    No thread is kept for reading: a hop between threads would cost more than a small model. Whoever waits for something
    reads, and if several wait, one of them reads for all.
    """

    def __init__(self, requests, answers, handle):
        """Both are file descriptors. `handle(head, buffer, offset)` is told of every frame, while the lock is held."""
        self._requests = socket.socket(fileno=requests)
        self._answers = socket.socket(fileno=answers)
        self._handle = handle
        self._turn = threading.Condition(threading.Lock())
        self._reading = False
        self._gone = False
        self._buffer = np.empty(READ_BYTES, np.uint8)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._sending = threading.Lock()
        self._notes = collections.deque()

    def wait(self, done):
        """Returns once `done()` says so; it is asked after every frame."""
        turn = self._turn
        with turn:
            while not done():
                if self._gone:
                    raise ServerGone
                if self._reading:
                    turn.wait()
                    continue
                self._reading = True
                turn.release()
                try:
                    self._fill()
                except OSError:
                    self._gone = True
                finally:
                    turn.acquire()
                    self._reading = False
                    # Somebody else has to read for those who still wait.
                    turn.notify_all()
                self._handle_frames()

    def poll(self):
        """Handles the frames that have come already."""
        with self._turn:
            if self._reading or self._gone:
                return
            try:
                while True:
                    self._fill(socket.MSG_DONTWAIT)
                    self._handle_frames()
            except BlockingIOError:
                pass
            except OSError:
                self._gone = True

    def _fill(self, flags=0):
        """Reads once. The buffer is never reused, because arrays lie on it; what is left of a frame moves to a new one."""
        held = self._end - self._start
        needed = max(HEADER.size, self._frame_bytes() if held >= HEADER.size else 0)
        if self._start + needed > len(self._view) or self._end == len(self._view):
            buffer = np.empty(max(READ_BYTES, needed), np.uint8)
            view = memoryview(buffer)
            view[:held] = self._view[self._start : self._end]
            self._buffer, self._view, self._start, self._end = buffer, view, 0, held
        received = self._requests.recv_into(self._view[self._end :], 0, flags)
        if received == 0:
            self._gone = True
        self._end += received

    def _frame_bytes(self):
        head_bytes, payload_bytes = HEADER.unpack_from(self._view, self._start)
        return HEADER.size + head_bytes + payload_bytes

    def _handle_frames(self):
        while self._end - self._start >= HEADER.size:
            head_bytes, payload_bytes = HEADER.unpack_from(self._view, self._start)
            payload = self._start + HEADER.size + head_bytes
            if self._end < payload + payload_bytes:
                return
            head = json.loads(bytes(self._view[self._start + HEADER.size : payload]))
            self._start = payload + payload_bytes
            self._handle(head, self._buffer, payload)

    def send(self, head, payloads=()):
        """Sends a frame."""
        parts, size = frame(head, payloads)
        with self._sending:
            self._write(parts, size)
        self._send_notes()

    def note(self, head):
        """Sends a frame without payload. Never waits for a lock, because the end of an object may come anywhere."""
        self._notes.append(head)
        self._send_notes()

    def _send_notes(self):
        # Whoever holds the lock looks here again once it has let it go.
        while self._notes and self._sending.acquire(blocking=False):
            try:
                self._write(*frame(self._notes.popleft(), ()))
            except ServerGone:
                self._notes.clear()
            finally:
                self._sending.release()

    def _write(self, parts, left):
        try:
            while left > 0:
                sent = self._answers.sendmsg(parts[:MOST_PARTS])
                left -= sent
                if left > 0:
                    parts = without(parts, sent)
        except OSError as error:
            raise ServerGone from error


def frame(head, payloads):
    """The parts of a frame, and the bytes that they have together."""
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    parts = [b"", text]
    payload_bytes = 0
    for payload in payloads:
        size = len(payload)
        padding = -size % ALIGNMENT
        if size:
            parts.append(payload)
        if padding:
            parts.append(b"\0" * padding)
        payload_bytes += size + padding
    parts[0] = HEADER.pack(len(text), payload_bytes)
    return parts, HEADER.size + len(text) + payload_bytes


# What one call of the system takes.
MOST_PARTS = 1024


def without(parts, sent):
    """The parts without their first bytes."""
    for index, part in enumerate(parts):
        if sent < len(part):
            return [memoryview(part)[sent:], *parts[index + 1 :]]
        sent -= len(part)
    return []
