#!/usr/bin/env python3
"""Trains `topics` on sentences.tsv: a graph that cuts text into words, counts those it knows and weighs them.

Needs scikit-learn 1.7.2, onnx 1.23.2 and onnxruntime 1.31.1, which splits the words here as it will when it serves.
The same run gives the same file.
"""
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, save
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB

HERE = Path(__file__).parent
TOPICS = (HERE / "labels.txt").read_text().split()
WORD = "[a-z']+"
CONTRIB = "com.microsoft"


def graph(vocabulary=None, weights=None, bias=None):
    """Text to words; with a vocabulary on to counts, and with weights on to probabilities."""
    nodes = [
        helper.make_node("Reshape", ["TEXT", "flat"], ["lines"]),
        # The locale "C" is on every machine; the default one is not.
        helper.make_node("StringNormalizer", ["lines"], ["lower"], case_change_action="LOWER", locale="C"),
        helper.make_node("Tokenizer", ["lower"], ["WORDS"], domain=CONTRIB, mark=0, mincharnum=1, pad_value="", tokenexp=WORD),
    ]
    constants, output = [numpy_helper.from_array(np.array([-1], np.int64), "flat")], ("WORDS", TensorProto.STRING, ["batch", None])
    if vocabulary is not None:
        size = len(vocabulary)
        nodes.append(helper.make_node(
            "TfIdfVectorizer", ["WORDS"], ["COUNTS"], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
            ngram_counts=[0], ngram_indexes=list(range(size)), pool_strings=vocabulary,
        ))
        output = ("COUNTS", TensorProto.FLOAT, ["batch", size])
    if weights is not None:
        nodes += [helper.make_node("Gemm", ["COUNTS", "weights", "bias"], ["scores"]), helper.make_node("Softmax", ["scores"], ["PROBABILITIES"])]
        constants += [numpy_helper.from_array(weights.astype(np.float32), "weights"), numpy_helper.from_array(bias.astype(np.float32), "bias")]
        output = ("PROBABILITIES", TensorProto.FLOAT, ["batch", len(TOPICS)])
    text = helper.make_tensor_value_info("TEXT", TensorProto.STRING, ["batch", 1])
    made = helper.make_graph(nodes, "topics", [text], [helper.make_tensor_value_info(*output)], constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)], ir_version=8)


def run(model, sentences):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"TEXT": np.array(sentences, object).reshape(-1, 1)})[0]


def fit(sentences, topics):
    vocabulary = sorted(set(run(graph(), sentences).reshape(-1)) - {""} - ENGLISH_STOP_WORDS)
    model = MultinomialNB(alpha=0.3).fit(run(graph(vocabulary), sentences), topics)
    return graph(vocabulary, model.feature_log_prob_.T, model.class_log_prior_)


def main():
    rows = [line.split("\t") for line in (HERE / "sentences.tsv").read_text().splitlines()]
    sentences, topics = np.array([text for _, text in rows]), np.array([TOPICS.index(topic) for topic, _ in rows])
    right = 0
    for train, test in StratifiedKFold(6, shuffle=True, random_state=0).split(sentences, topics):
        model = fit(sentences[train], topics[train])
        right += (run(model, sentences[test]).argmax(1) == topics[test]).sum()
    print(f"{right / len(topics):.1%} of {len(topics)} sentences, each judged by a model that had not seen it")
    model = fit(sentences, topics)
    (HERE / "1").mkdir(exist_ok=True)
    save(model, HERE / "1" / "model.onnx")


if __name__ == "__main__":
    main()
