#!/usr/bin/env python3
"""Classifies held-out handwritten digits with the ordinary Triton client: `classify_digits.py [http|grpc] [ADDRESS]`.

Needs `pip install tritonclient[http,grpc]`.
"""
import importlib
import json
import sys
from pathlib import Path

import numpy as np

PORTS = {"http": 8000, "grpc": 8001}


def main():
    protocol = sys.argv[1] if len(sys.argv) > 1 else "http"
    address = sys.argv[2] if len(sys.argv) > 2 else f"127.0.0.1:{PORTS[protocol]}"
    # Both modules speak the same words, so that one program serves for either protocol.
    triton = importlib.import_module(f"tritonclient.{protocol}")

    lines = (Path(__file__).parent / "held-out-digits.jsonl").read_text().splitlines()
    digits = [json.loads(line) for line in lines]
    images = np.array([digit["image"] for digit in digits], np.float32)
    given = triton.InferInput("IMAGE", list(images.shape), "FP32")
    given.set_data_from_numpy(images)

    client = triton.InferenceServerClient(address)
    best = triton.InferRequestedOutput("PROBABILITIES", class_count=1)
    answer = client.infer("digits", [given], outputs=[best], request_id="forty digits")

    right = 0
    for digit, row in zip(digits, answer.as_numpy("PROBABILITIES")):
        probability, index, label = row[0].decode().split(":")
        right += int(index) == digit["digit"]
        print(f"{digit['digit']}  read as {label:<5}  {float(probability):.3f}{'' if int(index) == digit['digit'] else '  wrong'}")
    print(f"{right} of {len(digits)} right")


if __name__ == "__main__":
    main()
