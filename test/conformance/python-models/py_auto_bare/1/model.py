"""Has no config at all."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(0)
        config.add_input({"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [-1, 2]})
        config.add_output({"name": "OUTPUT0", "data_type": "TYPE_INT32", "dims": [-1, 2]})
        config.set_model_transaction_policy({"decoupled": True})
        return config

    def execute(self, requests):
        for request in requests:
            tensor = pb_utils.Tensor("OUTPUT0", request.inputs()[0].as_numpy())
            request.get_response_sender().send(pb_utils.InferenceResponse([tensor]), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
