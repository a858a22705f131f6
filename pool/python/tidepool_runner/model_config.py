"""A model's config while the model completes it."""

import json


class ModelConfig:
    """What `auto_complete_config` is given and gives back. Every change that contradicts the config is a ValueError."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config)

    def as_dict(self):
        """To read; changes are made by the other methods."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size):
        given = self._model_config["max_batch_size"]
        if given > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {given}, but in auto-complete-config function for model "
                f"'{self._name}' specified max_batch_size {max_batch_size}"
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self):
        """Where the config names no scheduler."""
        for scheduler in ("sequence_batching", "ensemble_scheduling"):
            if scheduler in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{scheduler}', but auto-complete-config function "
                    f"for model '{self._name}' tries to set scheduling_choice as 'dynamic_batching'"
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input):
        self._add("input", input, ("name", "data_type", "dims", "optional"))

    def add_output(self, output):
        self._add("output", output, ("name", "data_type", "dims"))

    def set_model_transaction_policy(self, transaction_policy_dict):
        for name in transaction_policy_dict:
            if name != "decoupled":
                raise ValueError(
                    "model transaction property in auto-complete-config function for model "
                    f"'{self._name}' contains property other than 'decoupled'."
                )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        decoupled = transaction_policy_dict["decoupled"]
        given = policy.setdefault("decoupled", decoupled)
        if given != decoupled:
            raise ValueError(
                "trying to change decoupled property in auto-complete-config for model "
                f"'{self._name}', which is already set to '{given}'."
            )

    @property
    def _name(self):
        return self._model_config["name"]

    def _add(self, direction, tensor, properties):
        self._check_properties(direction, tensor, properties)
        stated = next((one for one in self._model_config[direction] if one["name"] == tensor["name"]), None)
        if stated is None:
            self._model_config[direction].append(tensor)
            return
        self._check_same(direction, stated, tensor)
        stated.update(tensor)

    def _check_properties(self, direction, tensor, properties):
        place = f"in auto-complete-config function for model '{self._name}'"
        if any(name not in properties for name in tensor):
            *first, last = [f"'{name}'" for name in properties]
            raise ValueError(
                f"{direction} '{tensor['name']}' {place} contains property other than {', '.join(first)} and {last}."
            )
        if "name" not in tensor:
            raise ValueError(f"{direction} {place} is missing 'name' property.")
        for name in ("data_type", "dims"):
            if name not in tensor:
                raise ValueError(f"{direction} '{tensor['name']}' {place} is missing '{name}' property.")

    def _check_same(self, direction, stated, tensor):
        data_type, dims, name = stated["data_type"], stated["dims"], tensor["name"]
        if data_type not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype {data_type} for {direction} "
                f"'{name}', model provides {tensor['data_type']}"
            )
        subject = f"model '{self._name}', tensor '{name}': the model expects"
        if dims and dims != tensor["dims"]:
            raise ValueError(f"{subject} dims {tensor['dims']} but the model configuration specifies dims {dims}")
        optional = stated.get("optional")
        if "optional" in tensor and optional not in (None, tensor["optional"]):
            raise ValueError(
                f"{subject} optional {tensor['optional']} but the model configuration specifies optional {optional}"
            )
