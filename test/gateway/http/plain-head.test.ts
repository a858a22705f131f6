import { describe, expect, it } from "vitest";
import { plainHead } from "../../../gateway/http/plain-head.ts";

const usual = {
  Host: "localhost:8000",
  "User-Agent": "tritonclient",
  Accept: "*/*",
  "Content-Length": "205",
  "Inference-Header-Content-Length": "141",
};

function headText(headers: object, line = "POST /v2/models/mlp/infer HTTP/1.1"): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from(`${[line, ...lines].join("\r\n")}\r\n\r\n`, "latin1");
}

describe("plainHead", () => {
  it("reads the head of an ordinary infer call", () => {
    const bytes = headText({ ...usual, traceparent: "00-1-2-01" });
    expect(plainHead(Buffer.concat([bytes, Buffer.from("body")]))).toEqual({
      bytes,
      bodyLength: 205,
      path: "/v2/models/mlp/infer",
      modelName: "mlp",
      modelVersion: "",
      jsonLength: "141",
      traceparent: "00-1-2-01",
      authorization: undefined,
      apiKey: undefined,
    });
  });

  it("reads what proves who calls, which makes no call less plain", () => {
    const read = plainHead(headText({ ...usual, Authorization: "Bearer x", "X-API-KEY": "y" }));
    expect(read).toMatchObject({ authorization: "Bearer x", apiKey: "y" });
  });

  it("reads the version of the path, and headers in any case and with blanks around their values", () => {
    const line = "POST /v2/models/a.b-c_1/versions/12/infer HTTP/1.1";
    const read = plainHead(headText({ HOST: " x ", "content-LENGTH": "0 " }, line));
    expect(read).toMatchObject({ modelName: "a.b-c_1", modelVersion: "12", bodyLength: 0 });
    expect(read?.jsonLength).toBeUndefined();
  });

  const notPlain: Readonly<Record<string, Buffer>> = {
    "another method": headText(usual, "GET /v2/models/mlp/infer HTTP/1.1"),
    "another path": headText(usual, "POST /v2/models/mlp/generate HTTP/1.1"),
    "a query": headText(usual, "POST /v2/models/mlp/infer?a=b HTTP/1.1"),
    "an escape in the path": headText(usual, "POST /v2/models/ml%70/infer HTTP/1.1"),
    "a way up in the path": headText(usual, "POST /v2/models/../infer HTTP/1.1"),
    "HTTP/1.0": headText(usual, "POST /v2/models/mlp/infer HTTP/1.0"),
    "no Host": headText({ "Content-Length": "1" }),
    "a Host that is none": headText({ ...usual, Host: "x/y" }),
    "no length": headText({ Host: "x" }),
    "two keys": headText({ ...usual, "X-API-Key": "x", "x-api-key": "y" }),
    "two lengths": headText({ ...usual, "content-length": "205" }),
    "a signed length": headText({ ...usual, "Content-Length": "+205" }),
    "a length in hexadecimal": headText({ ...usual, "Content-Length": "0x10" }),
    "a list of lengths": headText({ ...usual, "Content-Length": "205, 205" }),
    "a transfer coding": headText({ ...usual, "Transfer-Encoding": "chunked" }),
    "a content coding": headText({ ...usual, "Content-Encoding": "gzip" }),
    "a wish for a compressed answer": headText({ ...usual, "Accept-Encoding": "gzip" }),
    "a wish for events": headText({ ...usual, Accept: "text/event-stream" }),
    "a wish to end the connection": headText({ ...usual, Connection: "close" }),
    "an upgrade": headText({ ...usual, Upgrade: "h2c" }),
    "a body on request": headText({ ...usual, Expect: "100-continue" }),
    "a wish for a job": headText({ ...usual, Prefer: "respond-async" }),
    "a header that nobody knows": headText({ ...usual, "X-Anything": "1" }),
    "a name of JavaScript's": headText({ ...usual, constructor: "1" }),
    "a blank before the colon": headText({ ...usual, "Via ": "x" }),
    "a folded line": headText({ ...usual, Via: "x\r\n y" }),
    "a bare line feed": headText({ ...usual, Via: "x\nPrefer: respond-async" }),
    "a bare carriage return": headText({ ...usual, Via: "x\ry" }),
    "a zero": headText({ ...usual, Via: "x\0y" }),
    "a letter beyond ASCII": headText({ ...usual, Via: "\u{e9}" }),
    "more than node takes": headText({ ...usual, Via: "x".repeat(17_000) }),
    "half of a head": headText(usual).subarray(0, -1),
    nothing: Buffer.alloc(0),
  };
  it.for(Object.entries(notPlain))("leaves %s to node", ([, bytes]) => {
    expect(plainHead(bytes)).toBeUndefined();
  });
});
