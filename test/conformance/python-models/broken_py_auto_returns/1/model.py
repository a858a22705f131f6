class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        return {"max_batch_size": 8}
