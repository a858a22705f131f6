"""A request: one that a model is to answer, or one that a model makes of another."""

import asyncio

from . import calls
from .errors import TritonModelException
from .responses import checked_parameters, encoded_parameters, exact, parameters_text
from .tensors import Tensor


RESCHEDULE = 2


class PreferredMemory:
    """Where outputs of another model should lie. Here they always lie in the main memory."""

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        self.preferred_memory_type, self.preferred_device_id = preferred_memory_type, preferred_device_id


class InferenceTrace:
    """The trace that a request belongs to."""

    def __init__(self, context=None):
        self._context = context

    def get_context(self):
        """As JSON, or None for a request without a trace."""
        return self._context


class InferenceRequest:
    """The request's tensors and everything that came along."""

    __slots__ = (
        "_id", "_correlation_id", "_inputs", "_outputs", "_model", "_version",
        "_flags", "_timeout", "_trace", "_parameters", "_sender", "_again",
    )  # fmt: skip

    def __init__(
        self,
        request_id="",
        correlation_id=0,
        inputs=None,
        requested_output_names=None,
        model_name=None,
        model_version=-1,
        flags=0,
        timeout=0,
        preferred_memory=None,
        trace=None,
        parameters=None,
    ):
        if inputs is None or requested_output_names is None or not isinstance(model_name, str):
            raise TypeError("InferenceRequest: expected inputs, requested_output_names and model_name")
        if not isinstance(correlation_id, (int, str)):
            raise TritonModelException("Correlation ID must be integer or string")
        self._id, self._correlation_id = request_id, correlation_id
        self._inputs, self._outputs = list(inputs), set(requested_output_names)
        self._model, self._version = model_name, model_version
        self._flags, self._timeout, self._trace = flags, timeout, trace or InferenceTrace()
        self._parameters = checked_parameters(parameters)
        self._sender, self._again = None, False
        subject = f"for request with id '{request_id}' and model name '{model_name}' should not be empty."
        if any(tensor is None for tensor in self._inputs):
            raise TritonModelException(f"Input tensor {subject}")
        if not all(isinstance(tensor, Tensor) for tensor in self._inputs):
            raise TypeError("InferenceRequest: expected inputs to be a list of Tensor")
        if "" in self._outputs:
            raise TritonModelException(f"Requested output name {subject}")

    @classmethod
    def received(cls, head, inputs, outputs, sender):
        """One that the model is to answer."""
        request = cls.__new__(cls)
        _, request._id, request._correlation_id, request._flags, request._timeout, request._parameters, trace, _, _ = head
        request._inputs, request._outputs, request._sender = inputs, outputs, sender
        request._model, request._version, request._trace = "", -1, trace
        request._again = False
        return request

    def inputs(self):
        return self._inputs

    def request_id(self):
        return self._id

    def correlation_id(self):
        return self._correlation_id

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        self._flags = flags

    def timeout(self):
        """In microseconds."""
        return self._timeout

    def parameters(self):
        """As JSON."""
        return parameters_text(self._parameters)

    def trace(self):
        return self._trace if isinstance(self._trace, InferenceTrace) else InferenceTrace(self._trace)

    def requested_output_names(self):
        return set(self._outputs)

    def get_response_sender(self):
        if self._sender is None:
            raise TritonModelException(
                "Unable to send response. Response sender has no reference to the decoupled state of the model."
            )
        return self._sender

    def is_cancelled(self):
        return self._sender is not None and self._sender.is_cancelled()

    def set_release_flags(self, flags):
        """With `TRITONSERVER_REQUEST_RELEASE_RESCHEDULE` the model is given the request again after `execute`."""
        self._again = flags == RESCHEDULE

    def is_rescheduled(self):
        return self._again

    def exec(self, decoupled=False):
        """Has another model answer the request, and waits: one response, or an iterator over all of them."""
        return calls.call(self, decoupled)

    async def async_exec(self, decoupled=False):
        """The same without blocking other tasks."""
        return await asyncio.get_running_loop().run_in_executor(None, calls.call, self, decoupled)

    def encoded(self, connection):
        """What the wire carries of a request to another model: its head, and the bytes of its tensors."""
        trace = self.trace().get_context()
        heads, payloads = connection.encode(self._inputs)
        head = [
            self._model, self._version, self._id, exact(self._correlation_id), self._flags, self._timeout,
            encoded_parameters(self._parameters), trace, sorted(self._outputs), heads,
        ]  # fmt: skip
        return head, payloads
