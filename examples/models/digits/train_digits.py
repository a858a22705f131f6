#!/usr/bin/env python3
"""Trains both versions of `digits` on scikit-learn's handwritten digits and writes them as ONNX; also the held-out images.

Needs scikit-learn 1.7.2 and onnx 1.23.2. The same run gives the same files.
"""
import json
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).parent
HELD_OUT = HERE.parents[1] / "clients" / "held-out-digits.jsonl"
PIXEL_MAXIMUM = 16


def held_out_split():
    """Three quarters to train on, one quarter that no model sees before it is asked."""
    digits = load_digits()
    return train_test_split(digits.data, digits.target, test_size=0.25, random_state=0, stratify=digits.target)


def write_model(path, layers):
    """Dense layers with ReLU between them and a softmax behind them, over an image scaled to 0…1."""
    nodes = [helper.make_node("Flatten", ["IMAGE"], ["pixels"]), helper.make_node("Div", ["pixels", "maximum"], ["hidden0"])]
    constants = [numpy_helper.from_array(np.float32(PIXEL_MAXIMUM), "maximum")]
    for i, (weights, bias) in enumerate(layers):
        constants += [numpy_helper.from_array(weights.astype(np.float32), f"weights{i}"), numpy_helper.from_array(bias.astype(np.float32), f"bias{i}")]
        last = i == len(layers) - 1
        nodes.append(helper.make_node("Gemm", [f"hidden{i}", f"weights{i}", f"bias{i}"], [f"sum{i}"]))
        nodes.append(helper.make_node("Softmax" if last else "Relu", [f"sum{i}"], ["PROBABILITIES" if last else f"hidden{i + 1}"]))
    image = helper.make_tensor_value_info("IMAGE", TensorProto.FLOAT, ["batch", 8, 8])
    probabilities = helper.make_tensor_value_info("PROBABILITIES", TensorProto.FLOAT, ["batch", 10])
    graph = helper.make_graph(nodes, "digits", [image], [probabilities], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    path.parent.mkdir(exist_ok=True)
    save(model, path)


def main():
    train_x, test_x, train_y, test_y = held_out_split()
    linear = LogisticRegression(max_iter=2000, C=0.5).fit(train_x / PIXEL_MAXIMUM, train_y)
    deep = MLPClassifier((64,), max_iter=400, random_state=0, alpha=1e-3).fit(train_x / PIXEL_MAXIMUM, train_y)
    write_model(HERE / "1" / "model.onnx", [(linear.coef_.T, linear.intercept_)])
    write_model(HERE / "2" / "model.onnx", list(zip(deep.coefs_, deep.intercepts_)))
    for version, model in ((1, linear), (2, deep)):
        print(f"version {version}: {model.score(test_x / PIXEL_MAXIMUM, test_y):.1%} of {len(test_y)} held-out images")
    chosen = [{"digit": int(y), "image": x.astype(int).reshape(8, 8).tolist()} for x, y in zip(test_x[:40], test_y[:40])]
    HELD_OUT.write_text("".join(json.dumps(digit, separators=(",", ":")) + "\n" for digit in chosen))


if __name__ == "__main__":
    main()
