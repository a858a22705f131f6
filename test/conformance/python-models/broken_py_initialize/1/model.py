class TritonPythonModel:
    def initialize(self, args):
        raise ValueError("cannot initialize")

    def execute(self, requests):
        return []
