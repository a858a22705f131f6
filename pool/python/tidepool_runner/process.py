"""The life of the process: it does what the server asks, until the server is gone."""

import fcntl
import json
import os
import signal
import sys

import triton_python_backend_utils

from . import calls, logger
from .connection import Connection
from .errors import ContractError, describe
from .execution import Execution
from .model import load_model_class
from .model_config import ModelConfig
from .wire import ServerGone

# Handed over by the server.
REQUESTS, LIFELINE, INCOMING, OUTGOING, ANSWERS = 3, 4, 5, 6, 7


def run():
    """Serves until it is told to end, or the server ends."""
    for file_descriptor in (REQUESTS, LIFELINE, INCOMING, OUTGOING, ANSWERS):
        os.set_inheritable(file_descriptor, False)
    die_with_server()
    sys.stdout.reconfigure(line_buffering=True)
    # Files that appear beside a model would change it in the eyes of whoever watches the repository.
    sys.dont_write_bytecode = True
    connection = Connection(REQUESTS, ANSWERS)
    calls.connection = logger.connection = connection
    try:
        ModelProcess(connection).serve()
    except ServerGone:
        pass
    sys.stdout.flush()
    # Threads that a model has left behind must not keep the process.
    os._exit(0)


def die_with_server():
    """Has the system end this process and those that it starts when the server is gone, whatever they are doing."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(LIFELINE, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(LIFELINE, fcntl.F_SETFL, fcntl.fcntl(LIFELINE, fcntl.F_GETFL) | os.O_ASYNC)


class ModelProcess:
    """What a process knows of its model."""

    def __init__(self, connection):
        self._connection = connection
        self._directory = ""
        self._class = self._execution = None

    def serve(self):
        while True:
            (kind, *arguments), buffer, offset = self._connection.next_command()
            if kind == "execute":
                self._execution.run(*arguments, buffer, offset)
            elif kind == "finalize":
                self._finalize()
                return
            else:
                self._reply(getattr(self, f"_{kind}"), *arguments)

    def _reply(self, work, *arguments):
        """Tells the server what came of a step of the start."""
        try:
            self._connection.send(["done", None, work(*arguments)])
        except ServerGone:
            raise
        except BaseException as error:
            self._connection.send(["done", describe(error, self._directory), None])

    def _load(self, order):
        """Imports the model."""
        if order["sharedBytes"] > 0:
            self._connection.share(INCOMING, OUTGOING, order["sharedBytes"])
        self._directory = order["modelDirectory"]
        triton_python_backend_utils.model_directory = order["versionDirectory"]
        self._class = load_model_class(order)

    def _complete(self, config):
        """The config as the model completes it."""
        if not hasattr(self._class, "auto_complete_config"):
            return None
        completed = self._class.auto_complete_config(ModelConfig(config))
        if not isinstance(completed, ModelConfig):
            name = json.loads(config)["name"]
            raise ContractError(f"auto_complete_config function in model '{name}' must return a valid pb.ModelConfig object.")
        return json.dumps(completed.as_dict())

    def _describe(self, config):
        """What the file of a framework says of the model's tensors."""
        return self._class.describe(config)

    def _initialize(self, arguments, settings):
        calls.instance, calls.decoupled_model = settings["name"], settings["decoupled"]
        model = self._class()
        if hasattr(model, "initialize"):
            model.initialize(arguments)
        calls.allowed = True
        self._execution = Execution(self._connection, model, settings, self._directory)

    def _finalize(self):
        calls.allowed = False
        if self._execution is not None:
            self._execution.finalize()
