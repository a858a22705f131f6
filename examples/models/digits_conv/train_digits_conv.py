#!/usr/bin/env python3
"""Trains `digits_conv`: a convolution whose filters are drawn at random, and a linear layer that learns to read it.

Needs scikit-learn 1.7.2 and onnx 1.23.2. The same run gives the same file.
"""
import sys
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, checker, helper, numpy_helper, save
from sklearn.linear_model import LogisticRegression

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "digits"))
from train_digits import PIXEL_MAXIMUM, held_out_split  # noqa: E402

FILTERS, SIZE, STRIDE = 48, 3, 2


def features(images, filters):
    """The same as the graph's Conv and Relu, in numpy; `filters` is [FILTERS, SIZE, SIZE]."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (SIZE, SIZE), axis=(1, 2))[:, ::STRIDE, ::STRIDE]
    return np.maximum(np.einsum("nijab,fab->nfij", windows, filters), 0).reshape(len(images), -1)


def write_model(path, filters, weights, bias):
    constants = {"maximum": np.float32(PIXEL_MAXIMUM), "filters": filters[:, None], "weights": weights, "bias": bias, "channel": np.array([1], np.int64)}
    nodes = [
        helper.make_node("Div", ["IMAGE", "maximum"], ["scaled"]),
        helper.make_node("Unsqueeze", ["scaled", "channel"], ["picture"]),
        helper.make_node("Conv", ["picture", "filters"], ["maps"], kernel_shape=[SIZE, SIZE], strides=[STRIDE, STRIDE], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["maps"], ["active"]),
        helper.make_node("Flatten", ["active"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weights", "bias"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["PROBABILITIES"]),
    ]
    image = helper.make_tensor_value_info("IMAGE", TensorProto.FLOAT, ["batch", 8, 8])
    probabilities = helper.make_tensor_value_info("PROBABILITIES", TensorProto.FLOAT, ["batch", 10])
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    model = helper.make_model(helper.make_graph(nodes, "digits_conv", [image], [probabilities], initializers), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    path.parent.mkdir(exist_ok=True)
    save(model, path)


def main():
    train_x, test_x, train_y, test_y = held_out_split()
    train_images, test_images = ((x / PIXEL_MAXIMUM).reshape(-1, 8, 8).astype(np.float32) for x in (train_x, test_x))
    filters = np.random.default_rng(0).standard_normal((FILTERS, SIZE, SIZE)).astype(np.float32) / SIZE
    readout = LogisticRegression(max_iter=2000, C=0.3).fit(features(train_images, filters), train_y)
    write_model(HERE / "1" / "model.onnx", filters, readout.coef_.T.astype(np.float32), readout.intercept_.astype(np.float32))
    print(f"{readout.score(features(test_images, filters), test_y):.1%} of {len(test_y)} held-out images")


if __name__ == "__main__":
    main()
