"""The five ways in which the real client sends an inference."""
import queue

import tritonclient.grpc as grpc_client
import tritonclient.http as http_client


def http_sync(server, model, inputs, **options):
    return server.http.infer(model, inputs, **options)


def http_async(server, model, inputs, **options):
    return server.http.async_infer(model, inputs, **options).get_result(timeout=20)


def grpc_sync(server, model, inputs, **options):
    return server.grpc.infer(model, inputs, **options)


def grpc_async(server, model, inputs, **options):
    answers = queue.Queue()
    server.grpc.async_infer(model, inputs, lambda result, error: answers.put((result, error)), **options)
    return unwrap(answers.get(timeout=20))


def grpc_stream(server, model, inputs, **options):
    with Stream(server) as stream:
        stream.send(model, inputs, **options)
        return unwrap(stream.next())


class Stream:
    """One bidirectional stream on a client of its own; answers come in the order in which the server sent them."""

    def __init__(self, server, headers=None):
        self.client = grpc_client.InferenceServerClient(server.grpc_address)
        self.answers = queue.Queue()
        self.client.start_stream(lambda result, error: self.answers.put((result, error)), headers=headers)

    def send(self, model, inputs, **options):
        self.client.async_stream_infer(model, inputs, **options)

    def next(self, timeout=20):
        return self.answers.get(timeout=timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_stream()
        self.client.close()


def unwrap(answer):
    result, error = answer
    if error is not None:
        raise error
    return result


TRANSPORTS = {
    "HTTP": (http_client, http_sync),
    "HTTP async_infer": (http_client, http_async),
    "gRPC": (grpc_client, grpc_sync),
    "gRPC async_infer": (grpc_client, grpc_async),
    "gRPC stream": (grpc_client, grpc_stream),
}
