"""The generate extension: flat JSON in, flat JSON out, once or as server-sent events."""
from support import case


@case("generate maps keys to inputs and outputs to keys")
def mapped(server):
    def sent(model, body):
        return server.post(f"/v2/models/{model}/generate", body)

    return {"text": sent("word", {"INPUT0": "tide"}), "list of one": sent("word", {"INPUT0": ["tide"]}), "number": sent("number", {"INPUT0": 7}),
            "list": sent("identity_INT32", {"INPUT0": [1, 2, 3]}), "floats": sent("identity_FP32", {"INPUT0": [0.5, 2]}), "boolean": sent("identity_BOOL", {"INPUT0": True}),
            "id": sent("number", {"INPUT0": 7, "id": "mine"}), "parameters": sent("number", {"INPUT0": 7, "temperature": 0.5, "parameters": {"top": 3}}),
            "version": server.post("/v2/models/versions/versions/1/generate", {"INPUT0": [1, 2]})}


@case("generate refuses what it cannot map")
def refused(server):
    def sent(model, body):
        return server.post(f"/v2/models/{model}/generate", body)

    return {"nothing": sent("word", {}), "number for text": sent("word", {"INPUT0": 3}), "text for number": sent("number", {"INPUT0": "x"}),
            "object": sent("word", {"INPUT0": {"a": 1}}), "nested lists": sent("identity_INT32", {"INPUT0": [[1], [2]]}),
            "unknown model": sent("nobody", {"INPUT0": "x"}), "no JSON": sent("word", b"{"), "array": sent("word", []),
            "parameters": sent("word", {"INPUT0": "x", "parameters": 3}), "two variable dimensions": sent("square", {"INPUT0": [1, 2]})}


@case("generate_stream answers as server-sent events")
def streamed(server):
    answer = server.call("POST", "/v2/models/word/generate_stream", {"INPUT0": "tide"})
    return answer.seen("content-type")


@case("generate_stream refuses like generate")
def stream_refused(server):
    return [server.post("/v2/models/word/generate_stream", {}), server.post("/v2/models/nobody/generate_stream", {"INPUT0": "x"})]
