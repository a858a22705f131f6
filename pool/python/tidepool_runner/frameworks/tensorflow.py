"""Runs SavedModels and GraphDefs of TensorFlow."""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils

from ..datatypes import NUMPY
from ..errors import ContractError
from .batch import BFLOAT16
from .framework_model import FrameworkModel, failure, framework

# Otherwise it tells of the processor's instructions at each start.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
tf = framework("tensorflow", "TensorFlow", "pip install tensorflow-cpu, or tensorflow for GPUs")

GRAPHDEF = "tensorflow_graphdef"
SIGNATURE = "serving_default"
DATATYPES = {dtype.name: datatype for datatype, dtype in NUMPY.items()} | {"string": "BYTES", "bfloat16": "BF16"}


class TritonPythonModel(FrameworkModel):
    """A graph in a session of its own."""

    @classmethod
    def tensors(cls, settings):
        return graph_tensors(settings) if is_graphdef(settings) else signature_tensors(settings)

    def start(self):
        settings = self.settings
        self._inputs, outputs = settings.input_names(), list(settings.output_datatypes())
        graph = tf.Graph()
        session = tf.compat.v1.Session(graph=graph, config=session_config(settings))
        try:
            with graph.as_default():
                names = open_graph(session, settings, self._inputs + outputs)
            feeds = [names[name] for name in self._inputs]
            self._bfloat16 = {
                name for name, feed in zip(self._inputs, feeds) if graph.get_tensor_by_name(feed).dtype == tf.bfloat16
            }
            self._outputs = outputs
            self._call = session.make_callable([names[name] for name in outputs], feed_list=feeds)
        except (tf.errors.OpError, ValueError, KeyError, OSError, RuntimeError) as error:
            raise failure(f"TensorFlow cannot load '{settings.file_name}'", error) from error

    def run(self, inputs):
        fed = [self._fed(name, inputs[name]) for name in self._inputs]
        try:
            results = self._call(*fed)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise failure("TensorFlow execute failure", getattr(error, "message", error)) from error
        return {name: plain(result) for name, result in zip(self._outputs, results)}

    def _fed(self, name, array):
        return array.view(np.uint16).view(tf.bfloat16.as_numpy_dtype) if name in self._bfloat16 else array


def plain(result):
    """As the rest of this package knows arrays."""
    array = np.asarray(result)
    return array.view(np.uint16).view(BFLOAT16) if array.dtype == tf.bfloat16.as_numpy_dtype else array


def is_graphdef(settings):
    return settings.config.get("platform") == GRAPHDEF


def session_config(settings):
    """The threads of the instance, and the GPU that it may use."""
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=settings.threads("TF_NUM_INTRA_THREADS"),
        inter_op_parallelism_threads=settings.threads("TF_NUM_INTER_THREADS"),
        allow_soft_placement=True,
    )
    if settings.gpu is None:
        config.device_count["GPU"] = 0
    else:
        config.gpu_options.visible_device_list = str(settings.gpu)
        config.gpu_options.allow_growth = True
    return config


def open_graph(session, settings, names):
    """Makes the session ready, and gives the graph's own names of inputs and outputs."""
    if not is_graphdef(settings):
        tag = settings.text("TF_GRAPH_TAG", "serve")
        meta_graph = tf.compat.v1.saved_model.load(session, [tag], settings.file)
        signature = signature_of(meta_graph, settings)
        return {name: info.name for side in (signature.inputs, signature.outputs) for name, info in side.items()}
    tf.import_graph_def(read_graphdef(settings), name="")
    session.run(initial_operations(settings))
    return {name: tensor_name(name) for name in names}


def signature_tensors(settings):
    """What a signature says of its inputs and outputs."""
    signature = signature_of(read_meta_graph(settings), settings)
    return {
        "inputs": [described(name, info.dtype, info.tensor_shape) for name, info in sorted(signature.inputs.items())],
        "outputs": [described(name, info.dtype, info.tensor_shape) for name, info in sorted(signature.outputs.items())],
    }


def read_meta_graph(settings):
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    saved = parsed(SavedModel(), os.path.join(settings.file, "saved_model.pb"), settings)
    tag = settings.text("TF_GRAPH_TAG", "serve")
    for meta_graph in saved.meta_graphs:
        if tag in meta_graph.meta_info_def.tags:
            return meta_graph
    raise ContractError(f"'{settings.file_name}' has no graph with the tag '{tag}' (TF_GRAPH_TAG)")


def signature_of(meta_graph, settings):
    """The one that the config names, else the default one, else the only one."""
    wanted = settings.text("TF_SIGNATURE_DEF")
    known = {name: one for name, one in meta_graph.signature_def.items() if not name.startswith("__")}
    if not wanted:
        wanted = next(iter(known)) if len(known) == 1 else SIGNATURE
    if wanted in known:
        return known[wanted]
    raise ContractError(
        f"'{settings.file_name}' has no signature '{wanted}' (TF_SIGNATURE_DEF), "
        f"its signatures are: {', '.join(sorted(known))}"
    )


def graph_tensors(settings):
    """A graph knows types and shapes, but not which of its tensors are the model's inputs and outputs."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(read_graphdef(settings), name="")
    names = {"inputs": settings.input_names(), "outputs": list(settings.output_datatypes())}
    return {side: [graph_tensor(graph, name, settings) for name in own] for side, own in names.items()}


def graph_tensor(graph, name, settings):
    try:
        tensor = graph.get_tensor_by_name(tensor_name(name))
    except (KeyError, ValueError) as error:
        raise ContractError(f"'{settings.file_name}' has no tensor '{name}'") from error
    return described(name, tensor.dtype, tensor.shape.as_proto())


def tensor_name(name):
    return name if ":" in name else f"{name}:0"


def read_graphdef(settings):
    return parsed(tf.compat.v1.GraphDef(), settings.file, settings)


def parsed(message, path, settings):
    try:
        with open(path, "rb") as file:
            message.ParseFromString(file.read())
        return message
    except Exception as error:
        raise failure(f"TensorFlow cannot read '{settings.file_name}'", error) from error


def initial_operations(settings):
    """Those that a file beside the model, or in the folder of all its versions, names."""
    name = settings.text("TF_INIT_OPS_FILE")
    if not name:
        return []
    version = pb_utils.get_model_dir()
    paths = [os.path.join(folder, os.path.basename(name)) for folder in (version, os.path.dirname(version))]
    path = next((path for path in paths if os.path.exists(path)), None)
    if path is None:
        raise ContractError(f"parameter 'TF_INIT_OPS_FILE': given '{name}', which does not exist")
    with open(path, encoding="utf-8") as file:
        return json.load(file)["init_ops"]


def described(name, dtype, shape):
    """`shape` as a message; no dimensions where their number is open."""
    type_name = tf.as_dtype(dtype).base_dtype.name
    if type_name not in DATATYPES:
        raise ContractError(f"tensor '{name}' is of the type {type_name}, which the protocol does not have")
    return {"name": name, "datatype": DATATYPES[type_name], "shape": [dimension.size for dimension in shape.dim]}
