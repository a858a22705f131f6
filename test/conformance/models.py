#!/usr/bin/env python3
"""Writes the models that the conformance cases call: `models.py DIRECTORY onnx|python`.

Both servers get the same names, shapes and settings. With `onnx` the models are graphs; with `python` the same few lines
of arithmetic run behind a Python backend, for a reference server that has no ONNX backend.
"""
import shutil
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
# No row of two elements can be multiplied with itself.
FAILING = [("MatMul", ["INPUT0", "INPUT0"], ["OUTPUT0"])]
ROW_SUMS = [("Constant", [], ["axis"], {"value_int": 0}), ("CumSum", ["INPUT0", "axis"], ["OUTPUT0"])]

# What the nodes above mean in Python, for the reference server.
PYTHON = {
    "identity": '[pb.Tensor.from_dlpack("OUTPUT0", inputs[0].to_dlpack())]',
    "identity_bytes": '[pb.Tensor("OUTPUT0", inputs[0].as_numpy())]',
    "add_sub": '[pb.Tensor("OUTPUT0", inputs[0].as_numpy() + inputs[1].as_numpy()),\n'
    '                pb.Tensor("OUTPUT1", inputs[0].as_numpy() - inputs[1].as_numpy())]',
    "double": '[pb.Tensor("OUTPUT0", inputs[0].as_numpy() * 2)]',
    "failing": '[pb.Tensor("OUTPUT0", inputs[0].as_numpy() @ inputs[0].as_numpy())]',
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
SEQUENCE_MODEL_PY = """import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        given = {name: pb.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT0", "START", "END", "READY", "CORRID")}
        sequence, goes_on = given["CORRID"].item(), given["START"].item() == 0
        self.sums[sequence] = given["INPUT0"] + (self.sums.get(sequence, 0) if goes_on else 0)
        named = {"OUTPUT0": self.sums[sequence], "STARTED": given["START"], "ENDED": given["END"], "WAS_READY": given["READY"], "SEQUENCE": given["CORRID"]}
        return pb.InferenceResponse([pb.Tensor(name, array) for name, array in named.items()])
"""
# Adds up the rows of all requests of an execution: who got which sum tells who ran with whom, and in which order.
ROW_SUMS_MODEL_PY = """import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        rows = [pb.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests]
        sums = np.cumsum(np.concatenate(rows), axis=0)
        ends = np.cumsum([len(row) for row in rows])
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", part)]) for part in np.split(sums, ends[:-1])]
"""
WHOLE_MODELS_PY = {"sequence": SEQUENCE_MODEL_PY, "row_sums": ROW_SUMS_MODEL_PY}
# Control inputs: the output that shows each, ONNX's element type and the config.
SIGNALS = {
    "START": ("STARTED", "INT32", "kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 7 ]"),
    "END": ("ENDED", "FP32", "kind: CONTROL_SEQUENCE_END fp32_false_true: [ -1, 1 ]"),
    "READY": ("WAS_READY", "BOOL", "kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ]"),
    "CORRID": ("SEQUENCE", "UINT64", "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64"),
}
STATE = 'state [ { input_name: "SUM_IN" output_name: "SUM_OUT" data_type: TYPE_FP32 dims: [ 1 ] initial_state: { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true name: "zero" } } ]'
DELAY = "preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 400000"
LONG_DELAY = "preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 1500000"
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
        self.warmup_file = options.get("warmup_file", b"")
        self.broken = options.get("broken", False)
        both = ["INPUT0", "INPUT1"] if self.operation == "add_sub" else ["INPUT0"]
        self.inputs, self.outputs = both, [name.replace("IN", "OUT") for name in both]

    def write(self, directory, backend):
        """Writes config, labels and every version below the repository `directory`."""
        folder = directory / self.name
        for version, operation in self.versions.items():
            (folder / version).mkdir(parents=True, exist_ok=True)
            if backend == "python":
                text = WHOLE_MODELS_PY.get(operation) or MODEL_PY.replace("{outputs}", PYTHON[operation])
                text = "raise RuntimeError('no model here')" if self.broken else text
                (folder / version / "model.py").write_text(text)
            else:
                (folder / version / "model.onnx").write_bytes(b"no model here" if self.broken else self.graph(operation))
        (folder / "config.pbtxt").write_text(self.config(backend))
        if self.labels:
            (folder / "labels.txt").write_text(self.labels)
        if self.warmup_file:
            (folder / "warmup").mkdir()
            (folder / "warmup" / "data").write_bytes(self.warmup_file)

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
        nodes = {"add_sub": ADD_SUB, "double": DOUBLE, "row_sums": ROW_SUMS, "failing": FAILING}.get(operation, IDENTITY)
        element = TensorProto.DataType.Value(ONNX_TYPES.get(self.datatype, self.datatype))
        # A `reshape` to [] takes the only dimension away again.
        dims = [] if "reshape" in self.tensor_settings else [None if d == "-1" else int(d) for d in self.dims.split(",")]
        shape = ([None] if self.max_batch_size else []) + dims
        infos = {name: helper.make_tensor_value_info(name, element, shape) for name in self.inputs + self.outputs}
        graph = helper.make_graph(
            [helper.make_node(*node[:3], **dict(*node[3:])) for node in nodes], self.name,
            [infos[name] for name in self.inputs], [infos[name] for name in self.outputs],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model.SerializeToString()


class Ensemble:
    """A graph of other models. A step is a model, the tensors that it reads by input, and those that it writes by output."""

    def __init__(self, name, steps, **options):
        self.name, self.steps = name, steps
        self.inputs = options.get("inputs", {"IN": "2"})
        self.outputs = options.get("outputs", {"OUT": "2"})
        self.max_batch_size = options.get("max_batch_size", 8)
        self.output_settings = options.get("output_settings", "")
        self.labels = options.get("labels", "")
        self.settings = options.get("settings", "")

    def write(self, directory, backend):
        """Writes config and the empty version below the repository `directory`."""
        (directory / self.name / "1").mkdir(parents=True, exist_ok=True)
        (directory / self.name / "config.pbtxt").write_text(self.config())
        if self.labels:
            (directory / self.name / "labels.txt").write_text(self.labels)

    def config(self):
        tensor = 'name: "%s" data_type: TYPE_FP32 dims: [ %s ]'
        lines = [
            f'name: "{self.name}" platform: "ensemble" max_batch_size: {self.max_batch_size} {self.settings}',
            *[f"input [ {{ {tensor % pair} }} ]" for pair in self.inputs.items()],
            *[f"output [ {{ {tensor % pair} {self.output_settings} }} ]" for pair in self.outputs.items()],
            "ensemble_scheduling {",
            *[self.step(*step) for step in self.steps],
            "}",
        ]
        return "\n".join(lines) + "\n"

    def step(self, model, reads, writes, version=-1):
        maps = [f'input_map {{ key: "{key}" value: "{value}" }}' for key, value in reads.items()]
        maps += [f'output_map {{ key: "{key}" value: "{value}" }}' for key, value in writes.items()]
        return f'  step {{ model_name: "{model}" model_version: {version} {" ".join(maps)} }}'


def doubling(source, target, model="double"):
    """A step that doubles."""
    return (model, {"INPUT0": source}, {"OUTPUT0": target})


def ensembles():
    """Ensembles, and the models that only they need."""
    yield Model("double", dims="2", operation="double")
    yield Model("double_any", dims="-1", operation="double")
    yield Model("double_one", dims="2", operation="double", max_batch_size=0)
    yield Model("sum", dims="2", operation="add_sub")
    chain = [doubling("IN", "doubled"), ("sum", {"INPUT0": "doubled", "INPUT1": "IN"}, {"OUTPUT0": "OUT"})]
    yield Ensemble("ensemble_chain", chain)
    yield Ensemble("ensemble_fan", [
        doubling("IN", "doubled"), doubling("doubled", "fourfold", "double_any"),
        ("sum", {"INPUT0": "fourfold", "INPUT1": "doubled"}, {"OUTPUT0": "SUM", "OUTPUT1": "DIFFERENCE"}),
    ], outputs={"SUM": "2", "DIFFERENCE": "2"})
    yield Ensemble("ensemble_nested", [("ensemble_chain", {"IN": "IN"}, {"OUT": "threefold"}), doubling("threefold", "OUT")])
    yield Ensemble("ensemble_first", [("versions", {"INPUT0": "IN"}, {"OUTPUT0": "OUT"}, 1)])
    yield Ensemble("ensemble_latest", [doubling("IN", "OUT", "versions")])
    yield Ensemble("ensemble_waiting", [doubling("IN", "OUT", "waiting")])
    yield Ensemble("ensemble_any", [doubling("IN", "OUT")], inputs={"IN": "-1"})
    yield Ensemble("ensemble_unbatched", [doubling("IN", "OUT")], max_batch_size=0)
    yield Ensemble("ensemble_mixed", [doubling("IN", "doubled", "double_one"), doubling("doubled", "OUT")])
    yield Ensemble("ensemble_labels", [doubling("IN", "OUT")], output_settings='label_filename: "labels.txt"', labels="low\nhigh\n")
    yield Model("spare_double", operation="double")
    yield Ensemble("spare_ensemble", [doubling("IN", "doubled", "spare_double"), doubling("doubled", "OUT", "spare_double")])
    yield Ensemble("spare_outer", [("spare_ensemble", {"IN": "IN"}, {"OUT": "OUT"})])
    yield from broken_ensembles()


def broken_ensembles():
    """Ensembles that cannot be loaded, each for a reason of its own."""
    yield Model("broken_part", dims="2", broken=True)
    yield Ensemble("broken_ensemble_nobody", [doubling("IN", "OUT", "nobody")])
    yield Ensemble("broken_ensemble_member", [doubling("IN", "OUT", "broken_part")])
    yield Ensemble("broken_ensemble_version", [("versions", {"INPUT0": "IN"}, {"OUTPUT0": "OUT"}, 9)])
    yield Ensemble("broken_ensemble_input", [("double", {"INPUT": "IN"}, {"OUTPUT0": "OUT"})])
    yield Ensemble("broken_ensemble_open", [("sum", {"INPUT0": "IN"}, {"OUTPUT0": "OUT"})])
    yield Ensemble("broken_ensemble_output", [("double", {"INPUT0": "IN"}, {"OUTPUT": "OUT"})])
    yield Ensemble("broken_ensemble_type", [doubling("IN", "OUT", "number")])
    yield Ensemble("broken_ensemble_shape", [doubling("IN", "OUT", "fixed")])
    yield Ensemble("broken_ensemble_between", [doubling("IN", "doubled"), doubling("doubled", "OUT", "fixed")], outputs={"OUT": "16"})
    yield Ensemble("broken_ensemble_batch", [doubling("IN", "OUT")], max_batch_size=9)
    yield Ensemble("broken_ensemble_circle", [("sum", {"INPUT0": "IN", "INPUT1": "b"}, {"OUTPUT0": "a", "OUTPUT1": "OUT"}), doubling("a", "b")])
    yield Ensemble("broken_ensemble_self", [("broken_ensemble_self", {"IN": "IN"}, {"OUT": "OUT"})])


class SequenceModel(Model):
    """Adds up what comes in a sequence and shows its control inputs. As a graph it leaves the sum to the server, as implicit state."""

    def __init__(self, name, strategy="", max_batch_size=4, idle_seconds=60):
        super().__init__(name, dims="1", max_batch_size=max_batch_size, operation="sequence")
        self.strategy, self.idle_seconds = strategy, idle_seconds

    def config(self, backend):
        controls = [f'control_input [ {{ name: "{name}" control [ {{ {control} }} ] }} ]' for name, (_, _, control) in SIGNALS.items()]
        state = [] if backend == "python" else [STATE]
        idle = f"max_sequence_idle_microseconds: {int(self.idle_seconds * 1e6)}"
        shown = [f'output [ {{ name: "{output}" data_type: TYPE_{datatype} dims: [ 1 ] }} ]' for output, datatype, _ in SIGNALS.values()]
        batching = "\n".join([self.strategy, idle, *controls, *state])
        return super().config(backend) + "\n".join([*shown, f"sequence_batching {{\n{batching}\n}}"]) + "\n"

    def graph(self, operation):
        def info(name, datatype):
            return helper.make_tensor_value_info(name, TensorProto.DataType.Value(ONNX_TYPES.get(datatype, datatype)), [None, 1])

        nodes = [("Add", ["INPUT0", "SUM_IN"], ["SUM_OUT"]), ("Identity", ["SUM_OUT"], ["OUTPUT0"])]
        inputs, outputs = [info(name, "FP32") for name in ("INPUT0", "SUM_IN")], [info(name, "FP32") for name in ("OUTPUT0", "SUM_OUT")]
        for name, (output, datatype, _) in SIGNALS.items():
            nodes.append(("Identity", [name], [output]))
            inputs.append(info(name, datatype))
            outputs.append(info(output, datatype))
        graph = helper.make_graph([helper.make_node(*node) for node in nodes], self.name, inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model.SerializeToString()


def scheduled():
    """Models with priorities and queue policies, which hold a batch of fewer than 4 rows back for 1.5 seconds."""
    policies = {
        "plain": "",
        "levels": "priority_levels: 3 default_priority_level: 2",
        "limits": "priority_levels: 2 default_priority_level: 2 default_queue_policy { max_queue_size: 2 } priority_queue_policy { key: 1 value { max_queue_size: 1 } }",
        "rejecting": "default_queue_policy { default_timeout_microseconds: 300000 }",
        "overridden": "default_queue_policy { default_timeout_microseconds: 300000 allow_timeout_override: true }",
        "endless": "default_queue_policy { allow_timeout_override: true }",
        "delaying": "priority_levels: 2 default_priority_level: 2 priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 600000 } }",
    }
    for name, policy in policies.items():
        yield Model(f"scheduled_{name}", max_batch_size=4, operation="row_sums", settings=f"dynamic_batching {{ {LONG_DELAY} {policy} }}")


def cached():
    """Models whose answers are cached, alone and in ensembles."""
    settings = "response_cache { enable: true }"
    yield Model("cached", operation="double", settings=settings)
    yield Model("cached_batching", dims="2", operation="double", settings=f"{settings} dynamic_batching {{ }}")
    yield Model("cached_part", dims="2", operation="double", settings=settings)
    yield Ensemble("ensemble_of_cached", [doubling("IN", "doubled"), doubling("doubled", "OUT", "cached_part")])
    yield Ensemble("ensemble_cached", [doubling("IN", "OUT")], settings=settings)


def sample(data, name="s", batch_size=1, count=1, data_type="TYPE_FP32", dims="2"):
    """A sample of warmup with the input INPUT0."""
    given = f'inputs {{ key: "INPUT0" value {{ data_type: {data_type} dims: [ {dims} ] {data} }} }}'
    return f'model_warmup [ {{ name: "{name}" batch_size: {batch_size} count: {count} {given} }} ]'


def warmed():
    """Models that run something before they are ready, or cannot."""
    samples = [sample("zero_data: true", batch_size=3, count=2), sample("random_data: true", count=0), sample("zero_data: true", batch_size=0)]
    yield Model("warm", dims="2", settings="\n".join(samples))
    yield Model("warm_twice", dims="2", settings="instance_group [ { count: 1 kind: KIND_CPU } ] " + sample("zero_data: true"))
    yield Model("warm_strings", "BYTES", dims="2", settings=sample("random_data: true", data_type="TYPE_STRING"))
    file = sample('input_data_file: "data"', data_type="TYPE_INT32")
    yield Model("warm_file", "INT32", dims="2", settings=f"dynamic_batching {{ {DELAY} }} {file}", warmup_file=b"enough, and more")
    faults = {
        "data": sample(""),
        "dimension": sample("zero_data: true", dims="-1"),
        "type": sample("zero_data: true", data_type="TYPE_INT32"),
        "shape": sample("zero_data: true", dims="3"),
        "input": 'model_warmup [ { name: "s" batch_size: 1 } ]',
        "batch": sample("zero_data: true", batch_size=9),
    }
    for fault, settings in faults.items():
        yield Model(f"broken_warmup_{fault}", dims="2", settings=settings)
    yield Model("broken_warmup_run", dims="2", operation="failing", settings=sample("zero_data: true", "the name"))


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
    yield from cached()
    yield Model("latest", dims="2", versions={"1": "identity", "2": "double"})
    yield Model("waiting", settings=f"dynamic_batching {{ {DELAY} {POLICY % ''} }}")
    yield Model("crowded", settings=f"dynamic_batching {{ {DELAY} {POLICY % 'max_queue_size: 1'} }}")
    yield from scheduled()
    yield from warmed()
    yield SequenceModel("sequence_direct", "direct { }")
    yield SequenceModel("sequence_oldest", "oldest { max_candidate_sequences: 8 }")
    yield SequenceModel("sequence_single", max_batch_size=1)
    yield SequenceModel("sequence_hasty", idle_seconds=0.3)
    yield Model("spare", dims="2")
    yield Model("spare_files", dims="2")
    yield Model("broken", dims="2", broken=True)
    yield Model("broken_policy", dims="2", settings="dynamic_batching { preferred_batch_size: [ 16 ] }")
    yield Model("broken_versions", dims="2", settings="version_policy { specific { versions: [ 7 ] } }")
    yield from ensembles()


if __name__ == "__main__":
    target, kind = Path(sys.argv[1]), sys.argv[2]
    for model in models():
        model.write(target, kind)
    # The same files for both servers.
    shutil.copytree(Path(__file__).parent / "python-models", target, dirs_exist_ok=True)
