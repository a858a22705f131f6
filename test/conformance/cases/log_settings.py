"""Log settings, read and changed while the server runs."""
from google.protobuf.json_format import MessageToDict
from support import case


@case("log settings are read and changed over HTTP")
def over_http(server):
    before = server.get("/v2/logging")
    changed = server.post("/v2/logging", {"log_verbose_level": 1, "log_info": False})
    restored = server.post("/v2/logging", {"log_verbose_level": 0, "log_info": True})
    return [before, changed, restored]


@case("log settings are read and changed over gRPC")
def over_grpc(server):
    def plain(answer):
        return MessageToDict(answer, preserving_proto_field_name=True)

    before = plain(server.grpc.get_log_settings())
    changed = plain(server.grpc.update_log_settings({"log_verbose_level": 1, "log_format": "ISO8601"}))
    restored = plain(server.grpc.update_log_settings({"log_verbose_level": 0, "log_format": "default"}))
    return [before, changed, restored]


@case("log settings of the wrong kind are refused")
def wrong(server):
    def sent(**settings):
        return server.post("/v2/logging", settings)

    return {"text": sent(log_info="yes"), "level": sent(log_verbose_level="high"), "negative": sent(log_verbose_level=-1), "format": sent(log_format="xml"),
            "file": sent(log_file="/tmp/x"), "unknown": sent(log_colour=True), "no JSON": server.post("/v2/logging", b"{")}
