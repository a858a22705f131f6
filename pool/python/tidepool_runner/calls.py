"""What a model asks of the server while it runs: that other models answer, load or go."""

import base64
import threading

from .errors import TritonError, TritonModelException
from .responses import InferenceResponse

# Set by the process: its connection, the name of its instance, whether its model is decoupled, and whether it may call others
# now.
connection = None
instance = ""
decoupled_model = False
allowed = False


def call(request, decoupled):
    """Has the server run a request of another model. What goes wrong is told in the response."""
    if not allowed:
        raise TritonModelException("BLS is only supported during the 'execute' function.")
    number = connection.open_call()
    head, payloads = request.encoded(connection)
    connection.send(["call", number, decoupled, holds_instance(), head], payloads)
    if decoupled:
        return ResponseIterator(number)
    try:
        response, _ = read_answer(number)
        return response
    finally:
        connection.close_call(number)


def holds_instance():
    """Whether `execute` cannot return before the call is answered. A decoupled model may call from a thread of its own."""
    return not decoupled_model or threading.current_thread() is threading.main_thread()


def read_answer(number):
    """The next response to a call, and whether it is the last one."""
    head, buffer, offset = connection.next_answer(number)
    _, _, final, error, parameters, heads = head
    if error is not None:
        return InferenceResponse.received([], TritonError(error[1], error[0]), parameters), final
    outputs, _ = connection.tensors(heads, buffer, offset)
    return InferenceResponse.received(outputs, None, parameters), final


class ResponseIterator:
    """The responses of another model, each as soon as it is there. Iterates again over those that were read."""

    def __init__(self, number):
        self._number = number
        self._responses, self._next = [], 0
        self._finished = False

    def __iter__(self):
        if self._finished and self._next >= len(self._responses):
            self._next = 0
        return self

    def __next__(self):
        if self._next < len(self._responses):
            self._next += 1
            return self._responses[self._next - 1]
        if self._finished:
            raise StopIteration
        response, final = read_answer(self._number)
        self._responses.append(response)
        self._next += 1
        if final:
            self._finish()
        return response

    def cancel(self):
        """No more responses are wanted."""
        if not self._finished:
            connection.send(["cancel", self._number])

    def __del__(self):
        if not self._finished:
            connection.note(["cancel", self._number])
            self._finish()

    def _finish(self):
        self._finished = True
        connection.close_call(self._number)


def load_model(model_name, config="", files=None):
    """Loads or reloads a model, from the repository or from the config and files given."""
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{model_name}', files should be a dictionary of file paths and file contents"
        )
    contents = {path: base64.b64encode(content).decode() for path, content in (files or {}).items()}
    ask("Failed to load model: ", "load", model_name, config, contents)


def unload_model(model_name, unload_dependents=False):
    """Unloads a model; with `unload_dependents` those that it is composed of, too."""
    ask("Failed to unload model: ", "unload", model_name, unload_dependents)


def is_model_ready(model_name, model_version=""):
    """Whether the model, or that version of it, answers."""
    return ask("Failed to check model readiness: ", "ready", model_name, model_version)


def ask(subject, *question):
    """The server's answer to a question; what it refuses is raised."""
    error, answer = connection.ask(*question)
    if error is not None:
        raise TritonModelException(subject + error)
    return answer
