"""Asks the model `steady` over TLS with tritonclient: `tls-client.py http|grpc ADDRESS COUNT CA [CERTIFICATE KEY]`.

Each of COUNT rounds makes a client of its own and asks it five times. Prints how many answers were right.
"""
import importlib
import sys

import numpy as np


def main(protocol, address, count, authority, *pair):
    triton = importlib.import_module(f"tritonclient.{protocol}")
    tensor = triton.InferInput("x", [1], "FP32")
    tensor.set_data_from_numpy(np.zeros(1, np.float32))
    right = 0
    for _ in range(int(count)):
        client = triton.InferenceServerClient(url=address, ssl=True, **trust(protocol, authority, pair))
        for _ in range(5):
            right += client.infer("steady", [tensor]).as_numpy("y").tolist() == [1]
        client.close()
    print(right)


def trust(protocol, authority, pair):
    if protocol == "http":
        return {"ssl_options": {"ca_certs": authority, **dict(zip(("certfile", "keyfile"), pair))}}
    return {"root_certificates": authority, **dict(zip(("certificate_chain", "private_key"), pair))}


main(*sys.argv[1:])
