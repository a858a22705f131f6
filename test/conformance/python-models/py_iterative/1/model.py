"""Wants each request so often as it says, and then tells what it saw each time."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.seen = {}

    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        tensors = {tensor.name(): tensor.as_numpy().ravel().tolist()[0] for tensor in request.inputs()}
        if not tensors["READY"]:
            return answer([])
        own = request.correlation_id()
        if tensors["START"]:
            self.seen[own] = []
        turns = self.seen[own]
        same = tensors["ID"] == own
        turns.append([tensors["START"], tensors["END"], request.flags(), same, request.request_id(), request.timeout()])
        if tensors["TURNS"] < 0:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return answer(turns)
        if len(turns) < tensors["TURNS"]:
            request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        return answer(turns)


def answer(turns):
    text = json.dumps(turns)
    return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([[text]], dtype=object))])
