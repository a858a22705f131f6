import io

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image, UnidentifiedImageError

SIZE = (224, 224)
MOST_PIXELS = 50_000_000


class TritonPythonModel:
    """Opens files of pictures; the rows of a batch are as long as its longest file, zeros follow the others."""

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        files = pb_utils.get_input_tensor_by_name(request, "RAW_IMAGE").as_numpy()
        try:
            planes = np.stack([opened(file.tobytes()) for file in files])
        except Exception as error:
            # Other requests may have come in the same call: they are answered.
            reason = pb_utils.TritonError(f"not a picture: {error}", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=reason)
        return pb_utils.InferenceResponse([pb_utils.Tensor("PREPROCESSED_IMAGE", planes)])


def opened(file):
    try:
        image = Image.open(io.BytesIO(file))
    except UnidentifiedImageError:
        raise ValueError("of no kind that Pillow knows") from None
    with image:
        if image.width * image.height > MOST_PIXELS:
            raise ValueError(f"{image.width} by {image.height} pixels, expected at most {MOST_PIXELS}")
        pixels = np.asarray(image.convert("RGB").resize(SIZE), np.float32)
    return pixels.transpose(2, 0, 1) / 255
