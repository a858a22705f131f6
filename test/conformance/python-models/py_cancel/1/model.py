"""Waits for the cancellation of its request, and tells those who ask how many it has seen."""

import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        self.seen = 0

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            if pb_utils.get_input_tensor_by_name(request, "ASK").as_numpy()[0]:
                self.tell(sender, FINAL)
            else:
                self.tell(sender, 0)
                threading.Thread(target=self.wait, args=(request, sender)).start()

    def tell(self, sender, flags):
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("SEEN", np.array([self.seen], np.int32))]), flags=flags)

    def wait(self, request, sender):
        until = time.monotonic() + 10
        while not sender.is_cancelled() and time.monotonic() < until:
            time.sleep(0.005)
        self.seen += request.is_cancelled()
        sender.send(flags=FINAL)
