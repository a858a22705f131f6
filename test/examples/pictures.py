"""Writes pictures of one colour each, of several sizes, as PNG and JPEG in turn: `pictures.py FOLDER COUNT`.

The colours are those of the classifier in examples/pytorch-models, again and again. Prints the files' names, a line each.
"""
import sys
from pathlib import Path

from PIL import Image

COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 0), (255, 255, 255)]
KINDS = ["png", "jpeg"]


def main(folder, count):
    for i in range(int(count)):
        file = Path(folder) / f"{i:04d}.{KINDS[i % 2]}"
        Image.new("RGB", (20 + i % 7 * 30, 30), COLOURS[i % 5]).save(file)
        print(file)


if __name__ == "__main__":
    main(*sys.argv[1:])
