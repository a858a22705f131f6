#!/usr/bin/env python3
"""Writes the models that the conformance cases call: `models.py DIRECTORY onnx|python`.

Both servers get the same names, shapes and settings. With `onnx` the models are graphs; with `python` the same few lines
of arithmetic run behind a Python backend, for a reference server that has no ONNX backend.
"""
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

# The protocol's datatype, the config's spelling and ONNX's element type, where they are not simply `TYPE_…` and the same name.
CONFIG_TYPES = {"BYTES": "TYPE_STRING"}
ONNX_TYPES = {"FP16": "FLOAT16", "FP32": "FLOAT", "FP64": "DOUBLE", "BF16": "BFLOAT16", "BYTES": "STRING"}
DATATYPES = "BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 FP32 FP64 BYTES BF16".split()

IDENTITY = [("Identity", ["INPUT0"], ["OUTPUT0"])]
ADD_SUB = [("Add", ["INPUT0", "INPUT1"], ["OUTPUT0"]), ("Sub", ["INPUT0", "INPUT1"], ["OUTPUT1"])]
DOUBLE = [("Add", ["INPUT0", "INPUT0"], ["OUTPUT0"])]

# What the nodes above mean in Python, for the reference server.
PYTHON = {
    "identity": '[pb.Tensor.from_dlpack("OUTPUT0", inputs[0].to_dlpack())]',
    "identity_bytes": '[pb.Tensor("OUTPUT0", inputs[0].as_numpy())]',
    "add_sub": '[pb.Tensor("OUTPUT0", inputs[0].as_numpy() + inputs[1].as_numpy()),\n'
    '                pb.Tensor("OUTPUT1", inputs[0].as_numpy() - inputs[1].as_numpy())]',
    "double": '[pb.Tensor("OUTPUT0", inputs[0].as_numpy() * 2)]',
}
MODEL_PY = """import json

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.names = [tensor["name"] for tensor in json.loads(args["model_config"])["input"]]

    def execute(self, requests):
        return [self.answer([pb.get_input_tensor_by_name(request, name) for name in self.names]) for request in requests]

    def answer(self, inputs):
        return pb.InferenceResponse(
            {outputs}
        )
"""
DELAY = "preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 400000"
POLICY = "default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 60000000 %s }"


class Model:
    """One model: its tensors, its settings and what it computes."""

    def __init__(self, name, datatype="FP32", dims="-1", **options):
        self.name, self.datatype, self.dims = name, datatype, dims
        self.max_batch_size = options.get("max_batch_size", 8)
        self.operation = options.get("operation", "identity_bytes" if datatype == "BYTES" else "identity")
        self.versions = options.get("versions", {"1": self.operation})
        self.settings = options.get("settings", "")
        self.tensor_settings = options.get("tensor_settings", "")
        self.output_settings = options.get("output_settings", "")
        self.labels = options.get("labels", "")
        self.broken = options.get("broken", False)
        both = ["INPUT0", "INPUT1"] if self.operation == "add_sub" else ["INPUT0"]
        self.inputs, self.outputs = both, [name.replace("IN", "OUT") for name in both]

    def write(self, directory, backend):
        """Writes config, labels and every version below the repository `directory`."""
        folder = directory / self.name
        for version, operation in self.versions.items():
            (folder / version).mkdir(parents=True, exist_ok=True)
            if backend == "python":
                text = "raise RuntimeError('no model here')" if self.broken else MODEL_PY.replace("{outputs}", PYTHON[operation])
                (folder / version / "model.py").write_text(text)
            else:
                (folder / version / "model.onnx").write_bytes(b"no model here" if self.broken else self.graph(operation))
        (folder / "config.pbtxt").write_text(self.config(backend))
        if self.labels:
            (folder / "labels.txt").write_text(self.labels)

    def config(self, backend):
        data_type = CONFIG_TYPES.get(self.datatype, f"TYPE_{self.datatype}")
        tensor = f"data_type: {data_type} dims: [ {self.dims} ] {self.tensor_settings}"
        lines = [
            f'name: "{self.name}"',
            f'backend: "{"python" if backend == "python" else "onnxruntime"}"',
            f"max_batch_size: {self.max_batch_size}",
            *[f'input [ {{ name: "{name}" {tensor} }} ]' for name in self.inputs],
            *[f'output [ {{ name: "{name}" {tensor} {self.output_settings} }} ]' for name in self.outputs],
            "instance_group [ { count: 1 kind: KIND_CPU } ]",
            self.settings,
        ]
        return "\n".join(lines) + "\n"

    def graph(self, operation):
        nodes = {"add_sub": ADD_SUB, "double": DOUBLE}.get(operation, IDENTITY)
        element = TensorProto.DataType.Value(ONNX_TYPES.get(self.datatype, self.datatype))
        # A `reshape` to [] takes the only dimension away again.
        dims = [] if "reshape" in self.tensor_settings else [None if d == "-1" else int(d) for d in self.dims.split(",")]
        shape = ([None] if self.max_batch_size else []) + dims
        infos = {name: helper.make_tensor_value_info(name, element, shape) for name in self.inputs + self.outputs}
        graph = helper.make_graph(
            [helper.make_node(*node) for node in nodes], self.name,
            [infos[name] for name in self.inputs], [infos[name] for name in self.outputs],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model.SerializeToString()


def models():
    """All of them. Those whose names begin with `spare` or `broken` are not loaded when the server starts."""
    yield from (Model(f"identity_{datatype}", datatype) for datatype in DATATYPES)
    yield Model("fixed", dims="16")
    yield Model("grid", dims="2,3", max_batch_size=0)
    yield Model("square", dims="-1,-1", max_batch_size=0)
    yield Model("word", "BYTES", dims="1")
    yield Model("number", "INT32", dims="1")
    yield Model("scalar", dims="1", tensor_settings="reshape { shape: [ ] }")
    yield Model("add_sub", "INT32", dims="4", operation="add_sub")
    yield Model("counted", "INT32", dims="4", operation="add_sub")
    yield Model("scores", dims="4", output_settings='label_filename: "labels.txt"', labels="plaice\ncod\nherring\n")
    yield Model("ranks", "INT32", dims="4", max_batch_size=0)
    yield Model("versions", dims="2", versions={"1": "identity", "2": "double"}, settings="version_policy { all { } }")
    yield Model("latest", dims="2", versions={"1": "identity", "2": "double"})
    yield Model("waiting", settings=f"dynamic_batching {{ {DELAY} {POLICY % ''} }}")
    yield Model("crowded", settings=f"dynamic_batching {{ {DELAY} {POLICY % 'max_queue_size: 1'} }}")
    yield Model("spare", dims="2")
    yield Model("spare_files", dims="2")
    yield Model("broken", dims="2", broken=True)
    yield Model("broken_policy", dims="2", settings="dynamic_batching { preferred_batch_size: [ 16 ] }")
    yield Model("broken_versions", dims="2", settings="version_policy { specific { versions: [ 7 ] } }")


if __name__ == "__main__":
    target, kind = Path(sys.argv[1]), sys.argv[2]
    for model in models():
        model.write(target, kind)
