"""Finds the class of a model in its file."""

import importlib
import os
import sys

from .errors import ContractError


def load_model_class(order):
    """Imports the file so that it finds what lies beside it and in the folder of its model, or a framework's module."""
    if "framework" in order:
        return importlib.import_module(f"{__package__}.frameworks.{order['framework']}").TritonPythonModel
    version_directory, file_name = order["versionDirectory"], order["fileName"]
    sys.path += [version_directory, os.path.dirname(version_directory)]
    module = importlib.import_module(f"{os.path.basename(version_directory)}.{os.path.splitext(file_name)[0]}")
    if not hasattr(module, "TritonPythonModel"):
        raise ContractError(f"AttributeError: module '{module.__name__}' has no attribute 'TritonPythonModel'")
    return module.TritonPythonModel
