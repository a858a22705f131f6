class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_output({"name": "OUTPUT1", "data_type": "TYPE_INT32"})
        return config
