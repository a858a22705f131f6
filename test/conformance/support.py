"""What every case stands on: the register of cases, the server under test and ways to write down what it answered."""
import hashlib
import http.client
import json
from pathlib import Path

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

CASES = {}
FATAL = set()


def case(title, fatal=False):
    """Registers a function from a server to what it observed, as JSON. Which observation is right, recorded.json says.

    What is `fatal` ends the reference server, so that only differences.json can say what is right.
    """

    def register(function):
        assert title not in CASES, f"two cases are called '{title}'"
        CASES[title] = function
        if fatal:
            FATAL.add(title)
        return function

    return register


class Server:
    """The server under test, reached by both real clients and by hand."""

    def __init__(self, http_address, grpc_address, repository):
        self.http_address, self.grpc_address, self.repository = http_address, grpc_address, Path(repository)
        self.http = http_client.InferenceServerClient(http_address, concurrency=4)
        self.grpc = grpc_client.InferenceServerClient(grpc_address)

    def call(self, method, path, body=None, headers=None):
        """One bare HTTP request; the body may be anything that JSON can say."""
        connection = http.client.HTTPConnection(self.http_address, timeout=20)
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, raw, headers or {})
        response = connection.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        connection.close()
        return answer

    def get(self, path):
        return self.call("GET", path).seen()

    def post(self, path, body=None, headers=None):
        return self.call("POST", path, b"" if body is None else body, headers).seen()

    def version_file(self, model, version):
        """Name and content of the file behind a version, whatever the backend."""
        path = next((self.repository / model / version).glob("model.*"))
        return path.name, path.read_bytes()

    def config(self, model):
        """A minimal config of a model with two FP32 values a row, as a load may bring it along."""
        backend = "python" if self.version_file(model, "1")[0] == "model.py" else "onnxruntime"
        pair = {"data_type": "TYPE_FP32", "dims": [2]}
        tensors_of = {"input": [{"name": "INPUT0", **pair}], "output": [{"name": "OUTPUT0", **pair}]}
        return json.dumps({"name": model, "backend": backend, "max_batch_size": 8, **tensors_of})


class Answer:
    """What came back over bare HTTP."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def seen(self, *headers):
        """Status, body (parsed if it is JSON) and the named headers."""
        try:
            body = json.loads(self.body)
        except ValueError:
            body = self.body.decode("latin-1")
        return {"status": self.status, "body": body, **{name: self.headers.get(name) for name in headers}}


def attempt(function, *arguments, **options):
    """The result, or the error as a client sees it."""
    try:
        return function(*arguments, **options)
    except InferenceServerException as error:
        return {"error": error.message(), "status": error.status()}


def tensors(kind, arrays, datatypes=None, binary=True):
    """Inputs for the client module `kind`, from arrays by name."""
    made = []
    for name, array in arrays.items():
        given = kind.InferInput(name, list(array.shape), (datatypes or {}).get(name) or datatype_of(array))
        if kind is http_client:
            given.set_data_from_numpy(array, binary_data=binary)
        else:
            given.set_data_from_numpy(array)
        made.append(given)
    return made


def datatype_of(array):
    """The protocol's name for an array's type."""
    names = {"O": "BYTES", "b": "BOOL", "i": "INT", "u": "UINT", "f": "FP"}
    if array.dtype.name == "bfloat16":
        return "BF16"
    name = names[array.dtype.kind]
    return name if name in ("BYTES", "BOOL") else f"{name}{array.dtype.itemsize * 8}"


def shown(array):
    """An array as JSON: small ones in full, large ones as their digest. Numbers are text, which no reader of JSON rounds."""
    if array is None:
        return None
    if array.size > 64:
        return {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
    flat = [x.decode("latin-1") if isinstance(x, bytes) else str(x) for x in array.reshape(-1).tolist()]
    return {"shape": list(array.shape), "data": flat}


def outputs(result, *names):
    """The named outputs of a client's result."""
    return {name: shown(result.as_numpy(name)) for name in names or ("OUTPUT0",)}


def floats(*values):
    return np.array([values], np.float32)


def integers(*values):
    return np.array([values], np.int32)


def strings(*values):
    return np.array([[value if isinstance(value, bytes) else value.encode() for value in values]], object)
