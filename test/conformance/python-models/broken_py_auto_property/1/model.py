class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "INPUT1", "data_type": "TYPE_INT32", "dims": [4], "colour": "red"})
        return config
