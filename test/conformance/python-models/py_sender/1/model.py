"""Answers once, by the sender."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def text(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", np.array([value], dtype=object))])


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
        sender = request.get_response_sender()
        if mode == "thread":
            threading.Timer(0.05, lambda: sender.send(text("from a thread"), flags=FINAL)).start()
        elif mode == "apart":
            sender.send(text("before its end"))
            sender.send(flags=FINAL)
        elif mode == "twice":
            sender.send(text("first"))
            try:
                sender.send(text("second"))
            except pb_utils.TritonModelException as error:
                self.refused = str(error)
            sender.send(flags=FINAL)
        elif mode == "what was refused":
            return text(self.refused)
        elif mode == "only the end":
            sender.send(flags=FINAL)
        elif mode == "both":
            sender.send(text("sent"), flags=FINAL)
            return text("returned")
        else:
            sender.send(text("sent"), flags=FINAL)
        return None
