#!/usr/bin/env python3
"""Writes the SavedModel of this folder: `make_models.py [FOLDER]`.

Needs tensorflow. The weights are not learned, so that anybody can tell what the model should answer.
"""
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

LEVELS = np.arange(10) / 9
COLOURS = np.stack(np.meshgrid(LEVELS, LEVELS, LEVELS, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.float32)


class Classifier(tf.Module):
    """The nearer a colour is to the mean of the picture, the higher is its share."""

    def __init__(self):
        super().__init__()
        self.colours = tf.Variable(COLOURS)

    @tf.function(input_signature=[tf.TensorSpec([None, 224, 224, 3], tf.float32, name="input_image")])
    def serve(self, input_image):
        mean = tf.reduce_mean(input_image, axis=[1, 2])
        distances = tf.norm(mean[:, None] - self.colours[None], axis=2)
        return {"predictions": tf.nn.softmax(-50 * distances)}


def main(folder):
    classifier = Classifier()
    path = folder / "image_classifier" / "1" / "model.savedmodel"
    tf.saved_model.save(classifier, str(path), signatures=classifier.serve)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
