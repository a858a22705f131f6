"""Trace settings, of all models and of one, read and changed while the server runs. No server here has a trace file."""
from google.protobuf.json_format import MessageToDict
from support import attempt, case

ALL = "/v2/trace/setting"
ONE = "/v2/models/identity_FP32/trace/setting"
RESTORED = {"trace_level": None, "trace_rate": None, "trace_count": None, "log_frequency": None}


def over_grpc(server, settings, model=""):
    def asked():
        answer = server.grpc.update_trace_settings(model, settings) if settings else server.grpc.get_trace_settings(model)
        return MessageToDict(answer, preserving_proto_field_name=True)

    return attempt(asked)


@case("trace settings are read and changed over HTTP")
def http(server):
    before = [server.get(ALL), server.get(ONE)]
    changed = [server.post(ONE, {"trace_rate": "9"}), server.post(ALL, {"trace_rate": "12", "trace_count": "33"}), server.get(ONE)]
    own = [server.post(ONE, {"trace_rate": None, "log_frequency": "3", "trace_level": ["OFF"]}), server.get(ALL)]
    return [before, changed, own, server.post(ONE, RESTORED), server.post(ALL, RESTORED), server.get(ONE)]


@case("trace settings are read and changed over gRPC")
def grpc(server):
    before = [over_grpc(server, {}), over_grpc(server, {}, "identity_FP32")]
    changed = [over_grpc(server, {"trace_rate": "9", "trace_level": ["OFF"]}, "identity_FP32"), over_grpc(server, {"trace_count": "5"})]
    return [before, changed, over_grpc(server, RESTORED, "identity_FP32"), over_grpc(server, RESTORED)]


@case("trace settings that change nothing are ignored over HTTP")
def ignored(server):
    return [server.post(ALL, body) for body in ({}, [], 3, {"nothing": "x"}, {"trace_mode": "opentelemetry"}, {"trace_level": []}, {"trace_level": ["LOUD"]})]


@case("wrong trace settings are refused over HTTP")
def wrong_http(server):
    sent = [{"trace_file": "/tmp/x"}, {"trace_file": None}, {"trace_level": ["OFF", "TIMESTAMPS"]}, {"trace_level": "OFF"}, {"trace_level": [1]},
            {"trace_level": ["TIMESTAMPS"]}, {"trace_level": ["TENSORS"], "trace_rate": "0"}, {"trace_rate": 7}, {"trace_rate": "x"}, {"trace_rate": ""},
            {"trace_rate": "99999999999"}, {"trace_count": "-2"}, {"trace_count": "x"}, {"trace_count": "3000000000"}, {"log_frequency": "99999999999"},
            {"trace_rate": "11", "trace_count": "x"}]
    return [server.post(ALL, body) for body in sent] + [server.post(ALL, b"{"), server.get(ALL)]


@case("wrong trace settings are refused over gRPC")
def wrong_grpc(server):
    sent = [{"trace_file": "/tmp/x"}, {"trace_level": ["OFF", "TENSORS"]}, {"trace_level": ["TIMESTAMPS"]}, {"trace_rate": ["5", "6"]}, {"trace_rate": "x"},
            {"trace_rate": "99999999999"}, {"trace_count": "-5"}, {"trace_count": "99999999999"}, {"log_frequency": ["1", "2"]}]
    return [over_grpc(server, settings) for settings in sent] + [over_grpc(server, {})]


@case("trace settings are refused for models that do not answer")
def unknown(server):
    path = "/v2/models/nobody/trace/setting"
    return [server.get(path), server.post(path, {"trace_rate": "1"}), server.post(path, b"{"), server.get("/v2/models/identity_FP32/versions/1/trace/setting"),
            over_grpc(server, {}, "nobody"), over_grpc(server, {"trace_rate": "1"}, "nobody")]


@case("trace settings outlive a reload of the model")
def reload(server):
    before = server.post(ONE, {"trace_rate": "77"})
    server.http.unload_model("identity_FP32")
    server.http.load_model("identity_FP32")
    return [before, server.get(ONE), server.post(ONE, RESTORED)]


@case("trace settings are whole numbers within their bounds")
def numbers(server):
    texts = ("7x", "1.5", " 7", "-1", "3000000000")
    return {text: server.post(ALL, {"trace_rate": text}) for text in texts} | {"restored": server.post(ALL, RESTORED)}
