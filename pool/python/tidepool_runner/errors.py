"""The errors of the contract, and how an exception is told to a client."""

import importlib
import os
import sys

# What is of no interest to who wrote a model: this package, and how Python imports.
HIDDEN = (os.path.dirname(os.path.abspath(__file__)), os.path.dirname(importlib.__file__), "<frozen")

CODES = ("UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED")


class TritonModelException(Exception):
    """What the utilities raise, and what a model may raise."""


class ContractError(Exception):
    """A model does not do what the contract asks of it; the text says all."""


class TritonError:
    """The error of one response."""

    def __init__(self, message, code="INTERNAL"):
        if not isinstance(message, str):
            raise TypeError(f"TritonError: given a message of type {type(message).__name__}, expected str")
        if code not in CODES:
            raise TypeError(f"TritonError: given the code {code!r}, expected one of TritonError's codes")
        self._message, self._code = message, code

    def message(self):
        return self._message

    def code(self):
        return self._code


for code in CODES:
    setattr(TritonError, code, code)


def describe(error, model_directory):
    """What happened and where in the model, without telling where the model lies on this machine."""
    if isinstance(error, ContractError):
        return str(error)
    lines = "".join(places(error.__traceback__, model_directory))
    text = f"{type(error).__name__}: {str(error) or '<EMPTY MESSAGE>'}"
    return f"{text}\n\nAt:\n{lines}" if lines else text


def places(trace, model_directory):
    """The innermost first, up to the function that the server called."""
    frames = []
    while trace is not None:
        frames.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    for code, line in reversed(frames):
        if code.co_filename.startswith(HIDDEN):
            continue
        yield f"  {shown(code.co_filename, model_directory)}({line}): {code.co_name}\n"


def shown(file_name, model_directory):
    """A file's path below the model or below the folder of packages that it is in."""
    for folder in (model_directory, *sorted(sys.path, key=len, reverse=True)):
        if folder and file_name.startswith(folder + os.sep):
            return file_name[len(folder) + 1 :]
    return os.path.basename(file_name)
