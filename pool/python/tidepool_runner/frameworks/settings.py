"""What a config says of a framework's model."""

import os

import triton_python_backend_utils as pb_utils

from ..errors import ContractError

TRUE, FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


class Settings:
    """A config and the place of the instance."""

    def __init__(self, config, args=None):
        self.config, self.args = config, args or {}
        self.model_name = config["name"]
        self.file_name = config["default_model_filename"]

    @property
    def file(self):
        return os.path.join(pb_utils.get_model_dir(), self.file_name)

    @property
    def gpu(self):
        """The number of the GPU that the instance is to run on, or None."""
        return int(self.args["model_instance_device_id"]) if self.args["model_instance_kind"] == "GPU" else None

    def input_names(self):
        """Of all that the model is given, clients' inputs first and in the order of the config."""
        sequence = self.config.get("sequence_batching", {})
        controls = [control["name"] for control in sequence.get("control_input", ())]
        states = [state["input_name"] for state in sequence.get("state", ())]
        return [tensor["name"] for tensor in self.config.get("input", ())] + controls + states

    def output_datatypes(self):
        """By the names of all that the model is to give, states included."""
        states = self.config.get("sequence_batching", {}).get("state", ())
        outputs = {tensor["name"]: tensor["data_type"] for tensor in self.config.get("output", ())}
        return {**{state["output_name"]: state["data_type"] for state in states}, **outputs}

    def text(self, name, default=""):
        """A parameter of the config."""
        return self.config.get("parameters", {}).get(name, {}).get("string_value") or default

    def flag(self, name, default=False):
        given = self.text(name).lower()
        if given not in ("", *TRUE, *FALSE):
            raise ContractError(f"parameter '{name}': given '{given}', expected 'true' or 'false'")
        return given in TRUE if given else default

    def number(self, names, default):
        """The first of these parameters that is given."""
        name, given = next(((name, self.text(name)) for name in names if self.text(name)), ("", ""))
        if given and not (given.isascii() and given.isdigit()):
            raise ContractError(f"parameter '{name}': given '{given}', expected a number of 0 or more")
        return int(given) if given else default

    def threads(self, *names):
        """How many the instance may use: a parameter, or its share of the machine's cores."""
        share = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
        return self.number(names, int(share) if share.isdigit() else 0) or 1
