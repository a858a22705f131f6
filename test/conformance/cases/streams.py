"""Bidirectional gRPC streams."""
import tritonclient.grpc as grpc_client
from support import case, floats, outputs, tensors
from transports import Stream

PAIR = {"INPUT0": floats(1, 2)}


def shown(answer):
    result, error = answer
    if error is not None:
        return {"error": error.message(), "status": error.status()}
    response = result.get_response()
    return {"id": response.id, **outputs(result), "parameters": {name: str(value).strip() for name, value in response.parameters.items()}}


def inputs(*values):
    return tensors(grpc_client, {"INPUT0": floats(*values)})


@case("answers on a stream come in the order of their requests")
def in_order(server):
    with Stream(server) as stream:
        for i in range(50):
            stream.send("latest", inputs(i, 0), request_id=str(i))
        return [shown(stream.next())["id"] for _ in range(50)]


@case("one stream serves several models")
def several(server):
    with Stream(server) as stream:
        stream.send("latest", inputs(1, 2), request_id="a")
        stream.send("identity_FP32", inputs(3, 4, 5), request_id="b")
        stream.send("versions", inputs(6, 7), request_id="c", model_version="1")
        return sorted((shown(stream.next()) for _ in range(3)), key=lambda answer: answer["id"])


@case("an error does not end the stream")
def goes_on(server):
    with Stream(server) as stream:
        seen = []
        for model, request_id in (("latest", "1"), ("nobody", "2"), ("latest", "3")):
            stream.send(model, inputs(1, 2), request_id=request_id)
            seen.append(shown(stream.next()))
        stream.send("latest", inputs(1, 2, 3), request_id="4")
        return [*seen, shown(stream.next())]


@case("triton_grpc_error ends the stream with a real status")
def real_status(server):
    with Stream(server, headers={"triton_grpc_error": "true"}) as stream:
        stream.send("latest", inputs(1, 2))
        first = shown(stream.next())
        stream.send("nobody", inputs(1, 2))
        return [first, shown(stream.next())]


@case("an empty final response is marked when it is asked for")
def final_response(server):
    with Stream(server) as stream:
        stream.send("latest", inputs(1, 2), enable_empty_final_response=True)
        stream.send("latest", inputs(3, 4), request_id="next")
        return [shown(stream.next()), shown(stream.next())]


@case("a stream that is cancelled ends at once")
def cancelled(server):
    stream = Stream(server)
    stream.send("waiting", inputs(1, 2))
    stream.client.stop_stream(cancel_requests=True)
    answer = shown(stream.next())
    stream.client.close()
    return answer
