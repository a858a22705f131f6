"""Has a model execute batches of requests, and sends its answers."""

import asyncio
import inspect
import threading
import time
import traceback

from .errors import ContractError, describe
from .requests import InferenceRequest
from .responses import FINAL, InferenceResponse, InferenceResponseSender

now = time.perf_counter_ns


class Execution:
    """The model between its start and its end."""

    def __init__(self, connection, model, settings, directory):
        self._connection, self._model, self._directory = connection, model, directory
        self._decoupled, self._outputs = settings["decoupled"], frozenset(settings["outputs"])
        self._file_name, self._name = settings["fileName"], settings["name"]
        self._loop = None

    def run(self, number, heads, buffer, offset):
        """Executes one batch and tells the server what came of it: how long it took, and the responses."""
        began = now()
        requests = self._requests(heads, buffer, offset)
        ready = now()
        error, responses = None, []
        try:
            responses = self._responses(requests, self._execute(requests))
        # sys.exit raises what is no Exception; it ends no more than the batch.
        except BaseException as exception:
            error = describe(exception, self._directory)
            traceback.print_exception(exception)
            for request in requests:
                request.get_response_sender().close()
        executed = now()
        again = []
        for index, request in enumerate(requests if error is None else ()):
            if request.is_rescheduled():
                request.get_response_sender().close()
                again.append(index)
        encoded, payloads = [], []
        try:
            encoded, payloads = self._encoded(requests, responses)
        except Exception as exception:
            error, encoded, payloads = describe(exception, self._directory), [], []
        self._connection.send(
            ["executed", number, ready - began, executed - ready, error, encoded, now() - executed, again], payloads
        )

    def _requests(self, heads, buffer, offset):
        connection, requests = self._connection, []
        for head in heads:
            inputs, offset = connection.tensors(head[-1], buffer, offset)
            outputs = self._outputs if head[-2] is None else set(head[-2])
            sender = InferenceResponseSender(connection, head[0], outputs, self._decoupled)
            requests.append(InferenceRequest.received(head, inputs, outputs, sender))
        return requests

    def _execute(self, requests):
        if not hasattr(self._model, "execute"):
            raise ContractError(f"Python model {self._file_name} does not implement `execute` method.")
        result = self._model.execute(requests)
        if not inspect.iscoroutine(result):
            return result
        future = asyncio.run_coroutine_threadsafe(result, self._event_loop())
        if not self._decoupled:
            return future.result()
        future.add_done_callback(tell_failure)
        return None

    def _event_loop(self):
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        return self._loop

    def _responses(self, requests, responses):
        """The responses that the model returned, one for each request; None for one that is sent by its sender."""
        if responses is None:
            return []
        if self._decoupled:
            raise ContractError(
                f"Python model '{self._name}' is using the decoupled mode and the execute function must return None."
            )
        if not isinstance(responses, list):
            raise ContractError(f"Expected a list in the execute return, found type '{type(responses)}'.")
        if len(responses) != len(requests):
            raise ContractError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                f"InferenceRequest(s) size is:{len(requests)}, and InferenceResponse(s) size is:{len(responses)}\n"
            )
        for request, response in zip(requests, responses):
            if request.is_rescheduled() and response is not None:
                raise ContractError(
                    "Expected a None object in the execute function return list for reschduled request, "
                    f"found type '{type(response)}'."
                )
            if response is None:
                continue
            if not isinstance(response, InferenceResponse):
                raise ContractError(
                    "Expected an 'InferenceResponse' object in the execute function return list, "
                    f"found type '{type(response)}'."
                )
            request.get_response_sender().count(response, FINAL)
        return responses

    def _encoded(self, requests, responses):
        encoded, payloads = [], []
        for index, (request, response) in enumerate(zip(requests, responses)):
            if response is None:
                continue
            head, parts = request.get_response_sender().encode(response)
            encoded.append([index, *head])
            payloads += parts
        return encoded, payloads

    def finalize(self):
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        if hasattr(self._model, "finalize"):
            try:
                self._model.finalize()
            except Exception:
                traceback.print_exc()


def tell_failure(future):
    """Nobody waits for what a decoupled model does in the background."""
    if not future.cancelled() and future.exception() is not None:
        traceback.print_exception(future.exception())
