"""Answers as often, and in the way, that its order says."""

import json
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def number(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value], np.int32))])


def answer(sender, order):
    count = order["count"]
    for i in range(count):
        last = i == count - 1
        sender.send(number(i), flags=FINAL if last and order.get("final") == "with the last" else 0)
    if order.get("error"):
        sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("enough", pb_utils.TritonError.UNAVAILABLE)))
    if order.get("final") != "with the last":
        sender.send(flags=FINAL)
    if order.get("after"):
        try:
            sender.send(number(99))
        except Exception as error:
            print("refused:", error)


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            order = json.loads(pb_utils.get_input_tensor_by_name(request, "ORDER").as_numpy()[0])
            sender = request.get_response_sender()
            how = order.get("how")
            if how == "in a thread":
                threading.Thread(target=lambda: (time.sleep(0.05), answer(sender, order))).start()
            elif how == "raises":
                sender.send(number(7))
                raise ValueError("in the middle")
            elif how == "raises first":
                raise ValueError("at once")
            elif how == "returns":
                return [number(1)]
            elif how == "flags":
                try:
                    sender.send(number(1), flags=5)
                except Exception as error:
                    refused = str(error)
                try:
                    sender.send()
                except Exception as error:
                    refused += str(error)
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(refused)), flags=FINAL)
            else:
                answer(sender, order)
        return None
