"""The answers of a model, and the way by which they are sent."""

import json
import threading

from .backlog import response_bytes
from .errors import TritonError, TritonModelException
from .tensors import Tensor

FINAL = 1

# A sender belongs to one request and is seldom used by two threads at once: one lock for all is enough.
COUNTING = threading.Lock()


class InferenceResponse:
    """One answer: tensors, or an error."""

    __slots__ = ("_outputs", "_error", "_parameters")

    def __init__(self, output_tensors=(), error=None, parameters=None):
        self._outputs = list(output_tensors)
        if not all(isinstance(output, Tensor) for output in self._outputs):
            if any(output is None for output in self._outputs):
                raise TritonModelException("Output tensor for inference response should not be empty.")
            raise TypeError("InferenceResponse: expected output_tensors to be a list of Tensor")
        if error is not None and not isinstance(error, TritonError):
            raise TypeError("InferenceResponse: expected error to be a TritonError")
        self._error = error
        self._parameters = checked_parameters(parameters)

    @classmethod
    def received(cls, outputs, error, parameters):
        """Another model's; its parameters are JSON."""
        response = cls.__new__(cls)
        response._outputs, response._error, response._parameters = outputs, error, parameters
        return response

    def output_tensors(self):
        return self._outputs

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        """As JSON."""
        return parameters_text(self._parameters)

    def encoded(self, connection, names):
        """What the wire carries of it: error, parameters and heads, and the bytes. `names` are the outputs asked for."""
        parameters = encoded_parameters(self._parameters)
        if self._error is not None:
            return [[self._error.code(), self._error.message()], parameters, []], []
        heads, payloads = connection.encode([output for output in self._outputs if output.name() in names])
        return [None, parameters, heads], payloads


def checked_parameters(parameters):
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        raise TypeError("parameters: expected a dictionary")
    for name, value in parameters.items():
        if not isinstance(name, str):
            raise TritonModelException(f"Expect parameters keys to have type str, found type {type(name)}")
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(f"Expect parameters values to have type bool/int/str, found type {type(value)}")
    return dict(parameters)


def encoded_parameters(parameters):
    """What the wire carries of a dictionary or of its JSON: as text, because JSON's numbers are not exact everywhere."""
    given = json.loads(parameters) if isinstance(parameters, str) else parameters
    return [[name, *exact(value)] for name, value in given.items()] if given else None


def exact(value):
    """A value's kind and its text."""
    return ["b" if isinstance(value, bool) else "i" if isinstance(value, int) else "s", str(value)]


def parameters_text(parameters):
    return json.dumps(parameters) if isinstance(parameters, dict) else parameters or "{}"


class InferenceResponseSender:
    """Sends the answers to one request, from any thread, as long as it is not closed by the final one."""

    __slots__ = ("_connection", "_number", "_names", "_decoupled", "_sent", "_closed", "__weakref__")

    def __init__(self, connection, number, names, decoupled):
        self._connection, self._number = connection, number
        self._names, self._decoupled = names, decoupled
        self._sent, self._closed = 0, False

    def __del__(self):
        # Nobody can answer any more: whoever waits must not do so for ever.
        if not self._closed:
            self._connection.note(["dropped", self._number])

    def send(self, response=None, flags=0):
        if flags not in (0, FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if response is not None and not isinstance(response, InferenceResponse):
            raise TypeError("send: expected an InferenceResponse")
        if flags != FINAL:
            self._connection.wait_for_reader(self._number)
        self.count(response, flags)
        encoded, payloads = (None, []) if response is None else self.encode(response)
        size = 0 if flags == FINAL else response_bytes(encoded[2])
        self._connection.send_response(self._number, flags, encoded, payloads, size)

    def encode(self, response):
        return response.encoded(self._connection, self._names)

    def count(self, response, flags):
        """Keeps the rules; raises when the response may not be sent."""
        with COUNTING:
            if not self._decoupled:
                if response is not None and self._sent > 0:
                    raise TritonModelException(
                        "Unable to send response. Non-decoupled model cannot send more than one response."
                    )
                if response is None and flags == FINAL and self._sent == 0:
                    raise TritonModelException(
                        "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
                    )
            if self._closed:
                raise TritonModelException("Unable to send response. Response sender has been closed.")
            self._closed = flags == FINAL
            self._sent += 1
        if self._closed:
            self._connection.forget(self._number)

    def is_cancelled(self):
        return self._connection.is_cancelled(self._number)

    def is_closed(self):
        return self._closed

    def close(self):
        self._closed = True
        self._connection.forget(self._number)
