"""Answers with what its `initialize` was given, and with what lies beside it."""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils

from . import beside


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.answer = {
            "kinds": sorted({type(value).__name__ for value in args.values()}),
            "keys": sorted(args),
            "model_instance_kind": args["model_instance_kind"],
            "model_instance_device_id": args["model_instance_device_id"],
            "model_version": args["model_version"],
            "model_name": args["model_name"],
            "repository": os.path.basename(args["model_repository"]),
            "version there": os.path.isfile(os.path.join(args["model_repository"], args["model_version"], "model.py")),
            "model dir": os.path.basename(pb_utils.get_model_dir()),
            "config": {key: config[key] for key in ("name", "backend", "max_batch_size", "parameters")},
            "input": pb_utils.get_input_config_by_name(config, "ASKED"),
            "no input": pb_utils.get_input_config_by_name(config, "nobody"),
            "output dims": pb_utils.get_output_config_by_name(config, "ANSWER")["dims"],
            "numpy types": [str(pb_utils.triton_string_to_numpy(name)) for name in ("TYPE_STRING", "TYPE_BOOL", "TYPE_FP16", "TYPE_UINT64")],
            "decoupled": pb_utils.using_decoupled_model_transaction_policy(config),
            "beside": beside.SAID,
        }

    def execute(self, requests):
        text = np.array([[json.dumps(self.answer)]], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("ANSWER", text)]) for _ in requests]
