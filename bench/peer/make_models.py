#!/usr/bin/env python3
"""Writes the models that are measured: `make_models.py DIRECTORY`.

DIRECTORY/onnx is for servers with an ONNX backend; DIRECTORY/python holds the same files behind the Python backend of the
reference server, which runs them with onnxruntime. Models that are Python anyway, and the ensemble, are alike in both.
Weights are random: only the work that they make counts.
"""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

BLOCKS = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))

PYTHON_MODEL = '''import json
import os
import sys

sys.path.append(os.environ["TRITON_PEER_SITE"])
import numpy as np
import onnxruntime
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(config["parameters"]["intra_op_thread_count"]["string_value"])
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        rows = [pb.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests]
        batch = rows[0] if len(rows) == 1 else np.concatenate(rows)
        parts = np.split(self.session.run(None, {"INPUT0": batch})[0], np.cumsum([len(row) for row in rows])[:-1])
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", part)]) for part in parts]
'''


IDENTITY_MODEL = '''import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        arrays = [pb.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", array)]) for array in arrays]
'''

SCALING_MODEL = '''import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        arrays = [pb.get_input_tensor_by_name(request, "RAW").as_numpy() for request in requests]
        scaled = [array.astype(np.float32) * np.float32(1 / 255) - np.float32(0.5) for array in arrays]
        return [pb.InferenceResponse([pb.Tensor("SCALED", array)]) for array in scaled]
'''


class Graph:
    """A graph that grows node by node from INPUT0; `x` is the name of the last tensor."""

    def __init__(self):
        self.random = np.random.default_rng(0)
        self.nodes, self.weights, self.x = [], [], "INPUT0"

    def add(self, operation, *inputs, output=None, **attributes):
        self.x = output or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [self.x], **attributes))
        return self

    def constant(self, *shape, fan_in):
        name = f"w{len(self.weights)}"
        values = self.random.standard_normal(shape) * np.sqrt(1.6 / fan_in) if fan_in else np.zeros(shape)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def dense(self, inputs, outputs, output=None):
        return self.add("Gemm", self.x, self.constant(inputs, outputs, fan_in=inputs), self.constant(outputs, fan_in=0), output=output)

    def conv(self, inputs, outputs, size, stride):
        weights = self.constant(outputs, inputs, size, size, fan_in=inputs * size * size)
        bias = self.constant(outputs, fan_in=0)
        return self.add("Conv", self.x, weights, bias, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4)

    def relu(self):
        return self.add("Relu", self.x)


def identity():
    return Graph().add("Identity", "INPUT0", output="OUTPUT0")


def mlp():
    return Graph().dense(784, 512).relu().dense(512, 256).relu().dense(256, 10, output="OUTPUT0")


def conv():
    """The shape of ResNet-18."""
    graph = Graph().conv(3, 64, 7, 2).relu()
    graph.add("MaxPool", graph.x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for outputs, stride in BLOCKS:
        before = graph.x
        after = graph.conv(channels, outputs, 3, stride).relu().conv(outputs, outputs, 3, 1).x
        if channels != outputs:
            graph.x = before
            before = graph.conv(channels, outputs, 1, stride).x
        graph.add("Add", after, before).relu()
        channels = outputs
    graph.add("GlobalAveragePool", graph.x)
    graph.add("Flatten", graph.x)
    return graph.dense(512, 1000, output="OUTPUT0")


# By name: the graph, what a row of it takes and gives, and its settings.
MODELS = {
    "identity_fp32": (identity, [16], [16], {"batch": 8, "threads": 1, "more": ""}),
    "mlp": (mlp, [784], [10], {"batch": 64, "threads": 1, "more": "dynamic_batching { max_queue_delay_microseconds: 100 }"}),
    "mlp_cached": (mlp, [784], [10], {"batch": 64, "threads": 1, "more": "dynamic_batching { max_queue_delay_microseconds: 100 } response_cache { enable: true }"}),
    "conv": (conv, [3, 224, 224], [1000], {"batch": 8, "threads": 2, "more": "dynamic_batching { }"}),
}


# Tensors of a megabyte; and what stands before mlp in the ensemble.
PYTHON_MODELS = {
    "identity_py": (IDENTITY_MODEL, """name: "identity_py"
backend: "python"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 262144 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 262144 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""),
    "preproc_py": (SCALING_MODEL, """name: "preproc_py"
backend: "python"
max_batch_size: 64
input [ { name: "RAW" data_type: TYPE_UINT8 dims: [ 784 ] } ]
output [ { name: "SCALED" data_type: TYPE_FP32 dims: [ 784 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
dynamic_batching { }
"""),
}

ENSEMBLE = """name: "ens_py"
platform: "ensemble"
max_batch_size: 64
input [ { name: "RAW" data_type: TYPE_UINT8 dims: [ 784 ] } ]
output [ { name: "PROBS" data_type: TYPE_FP32 dims: [ 10 ] } ]
ensemble_scheduling { step [
  { model_name: "preproc_py" model_version: -1 input_map { key: "RAW" value: "RAW" } output_map { key: "SCALED" value: "scaled" } },
  { model_name: "mlp" model_version: -1 input_map { key: "INPUT0" value: "scaled" } output_map { key: "OUTPUT0" value: "PROBS" } }
] }
"""


def config(name, backend, dims, settings):
    given, returned = dims
    return f"""name: "{name}"
backend: "{backend}"
max_batch_size: {settings["batch"]}
input [ {{ name: "INPUT0" data_type: TYPE_FP32 dims: {given} }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_FP32 dims: {returned} }} ]
instance_group [ {{ count: 1 kind: KIND_CPU }} ]
parameters {{ key: "intra_op_thread_count" value: {{ string_value: "{settings["threads"]}" }} }}
{settings["more"]}
"""


def main():
    target = Path(sys.argv[1])
    for name, (build, given, returned, settings) in MODELS.items():
        graph = build()
        shapes = [helper.make_tensor_value_info(tensor, TensorProto.FLOAT, ["batch", *dims]) for tensor, dims in (("INPUT0", given), ("OUTPUT0", returned))]
        made = helper.make_graph(graph.nodes, name, shapes[:1], shapes[1:], graph.weights)
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        checker.check_model(model)
        for kind, backend in (("onnx", "onnxruntime"), ("python", "python")):
            folder = target / kind / name
            (folder / "1").mkdir(parents=True, exist_ok=True)
            save(model, folder / "1" / "model.onnx")
            (folder / "config.pbtxt").write_text(config(name, backend, (given, returned), settings))
        (target / "python" / name / "1" / "model.py").write_text(PYTHON_MODEL)
    for kind in ("onnx", "python"):
        for name, (source, settings) in PYTHON_MODELS.items():
            (target / kind / name / "1").mkdir(parents=True, exist_ok=True)
            (target / kind / name / "1" / "model.py").write_text(source)
            (target / kind / name / "config.pbtxt").write_text(settings)
        (target / kind / "ens_py" / "1").mkdir(parents=True, exist_ok=True)
        (target / kind / "ens_py" / "config.pbtxt").write_text(ENSEMBLE)


if __name__ == "__main__":
    main()
