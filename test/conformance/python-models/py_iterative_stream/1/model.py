"""Answers a request once in each of so many turns as it says."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.turns = {}

    def execute(self, requests):
        for request in requests:
            tensors = {tensor.name(): tensor.as_numpy().ravel().tolist()[0] for tensor in request.inputs()}
            if tensors["READY"]:
                self.one(request, tensors)

    def one(self, request, tensors):
        own = request.correlation_id()
        turn = 1 if tensors["START"] else self.turns[own] + 1
        self.turns[own] = turn
        sender = request.get_response_sender()
        text = np.array([[f"turn {turn}"]], dtype=object)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", text)]))
        if turn < tensors["TURNS"]:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        else:
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
