import numpy as np
import triton_python_backend_utils as pb_utils

SIZE = 224


class TritonPythonModel:
    """Brings pictures to one size: rows of colours from 0 to 255 become planes of numbers from 0 to 1."""

    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.process(request)]) for request in requests]

    def process(self, request):
        images = pb_utils.get_input_tensor_by_name(request, "raw_image").as_numpy()
        _, height, width, _ = images.shape
        if height == 0 or width == 0:
            raise ValueError(f"a picture of {height} by {width} has no pixels")
        rows, columns = np.arange(SIZE) * height // SIZE, np.arange(SIZE) * width // SIZE
        nearest = images[:, rows[:, None], columns]
        planes = nearest.transpose(0, 3, 1, 2).astype(np.float32) / 255
        return pb_utils.Tensor("processed_image", planes)
