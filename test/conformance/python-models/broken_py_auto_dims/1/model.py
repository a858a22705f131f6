class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_output({"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [5]})
        return config
