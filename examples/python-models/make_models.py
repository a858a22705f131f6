#!/usr/bin/env python3
"""Writes the ONNX files of this folder, and the lists of words and colours that the Python models read: `make_models.py [FOLDER]`.

Needs numpy and onnx. The weights are not learned but laid down, so that anybody can tell what the models should answer.
"""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

# How much a word says for a text being negative (below 0) or positive.
WORDS = {
    "love": 2, "great": 2, "wonderful": 2, "excellent": 2, "good": 1, "nice": 1, "fine": 1, "happy": 1,
    "bad": -1, "slow": -1, "poor": -1, "late": -1, "awful": -2, "terrible": -2, "broken": -2, "hate": -2,
}  # fmt: skip
# What a text of unknown words says for being neutral.
NEUTRAL = 0.5
LEVELS = np.round(np.arange(10) * 255 / 9)
COLOURS = np.stack(np.meshgrid(LEVELS, LEVELS, LEVELS, indexing="ij"), axis=-1).reshape(-1, 3)


def main(folder):
    scores = np.array(list(WORDS.values()), np.float32)
    for version, weights in [(1, np.sign(scores)), (2, scores)]:
        write(sentiment(weights), folder / "text_classifier" / str(version))
    write(nearest_colour(), folder / "image_classifier" / "1")
    lines(WORDS, folder / "tokenizer" / "vocabulary.txt")
    lines(("#%02x%02x%02x" % tuple(colour.astype(int)) for colour in COLOURS), folder / "postprocessor" / "labels.txt")


def sentiment(weights):
    """Adds up what the words say; version 1 knows only which way a word points, version 2 how strongly, too."""
    # Row 0 is for words that are not known, and fills up short texts.
    known = np.array([[max(-weight, 0), 0, max(weight, 0)] for weight in [0, *weights]], np.float32)
    nodes = [
        helper.make_node("Less", ["input_ids", "size"], ["is_known"]),
        helper.make_node("Where", ["is_known", "input_ids", "unknown"], ["rows"]),
        helper.make_node("Gather", ["table", "rows"], ["said"]),
        helper.make_node("ReduceSum", ["said", "words"], ["sums"], keepdims=0),
        helper.make_node("Add", ["sums", "neutral"], ["logits"]),
    ]
    constants = {
        "size": np.int64(len(known)), "unknown": np.int64(0), "table": known, "words": np.array([1]),
        "neutral": np.array([0, NEUTRAL, 0], np.float32),
    }  # fmt: skip
    return model(nodes, constants, ("input_ids", TensorProto.INT64, ["batch", "words"]), ("logits", [3]))


def nearest_colour():
    """The nearer a colour is to the mean of the picture, the higher is its logit: |a|² - |a - b|² = 2ab - |b|²."""
    colours = (COLOURS / 255).astype(np.float32)
    nodes = [
        helper.make_node("ReduceMean", ["input"], ["mean"], axes=[2, 3], keepdims=0),
        helper.make_node("Gemm", ["mean", "twice", "squares"], ["output"]),
    ]
    constants = {"twice": 2 * colours.T, "squares": -(colours**2).sum(axis=1)}
    return model(nodes, constants, ("input", TensorProto.FLOAT, ["batch", 3, 224, 224]), ("output", [1000]))


def model(nodes, constants, given, wanted):
    name, dims = wanted
    graph = helper.make_graph(
        nodes,
        "example",
        [helper.make_tensor_value_info(*given)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *dims])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write(made, version):
    version.mkdir(parents=True, exist_ok=True)
    save(made, version / "model.onnx")


def lines(texts, file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{text}\n" for text in texts))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
