import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { rawConnection } from "../helpers/raw-connection.ts";
import { serving } from "../helpers/serving.ts";
import { goodBody, writeEchoModels } from "./echo-models.ts";

const infer = "POST /v2/models/list/infer HTTP/1.1\r\nHost: here\r\n";
const notHttp = "the request is not valid HTTP/1.1";
const badTarget = "the request's target or its Host header is not valid";
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

describe("tidepool serve, connected to badly", () => {
  const running = serving(
    writeEchoModels,
    "--http-request-timeout-secs=1",
    "--http-max-input-size=1000000",
  );
  const good = async (): Promise<number> => (await running.http.infer("list", goodBody)).status;

  it.each([
    ["bytes that are no request", "\0\u0001\u0002what\r\n\r\n", 400, notHttp],
    ["a negative length", `${infer}Content-Length: -5\r\n\r\n{`, 400, notHttp],
    ["two lengths", `${infer}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{`, 400, notHttp],
    [
      "a length beside chunks",
      `${infer}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      notHttp,
    ],
    ["a chunk without a size", `${infer}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`, 400, notHttp],
    [
      "a chunk larger than any number",
      `${infer}Transfer-Encoding: chunked\r\n\r\n${"F".repeat(17)}\r\n`,
      400,
      notHttp,
    ],
    [
      "a host that is none",
      "GET /v2 HTTP/1.1\r\nHost: a b/c\r\n\r\n",
      400,
      "Host: given what is none",
    ],
    [
      "a target that is no path",
      "GET http://[::bad/v2 HTTP/1.1\r\nHost: x\r\n\r\n",
      400,
      badTarget,
    ],
    ["headers without end", `${infer}a: ${"x".repeat(20_000)}`, 431, "more than 16384 bytes"],
    [
      "a large body that waits to be asked for",
      `${infer}Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n`,
      400,
      "exceeds the maximum allowed input size of 1000000 bytes",
    ],
  ])("refuses %s", async (_, text, status, error) => {
    const { socket, ended } = await rawConnection(running.server.http, text);
    // One that is kept alive would end with the request timeout only.
    socket.setTimeout(200, () => socket.end());
    const answer = String(await ended);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `, "u"));
    expect(answer).toContain(error);
    expect(await good()).toBe(200);
  });

  it("forgets a request whose client hangs up in the middle of the body", async () => {
    const { socket } = await rawConnection(
      running.server.http,
      `${infer}Content-Length: 1000\r\n\r\n{"inputs":[`,
    );
    await sleep(50);
    socket.destroy();
    expect(await good()).toBe(200);
  });

  it.each([
    ["the head", "POST /v2/models/list/infer HTTP/1.1\r\nHo"],
    ["the body", `${infer}Content-Length: 1000\r\n\r\n{`],
  ])("ends a connection that sends %s byte by byte for too long", async (_, beginning) => {
    const { socket, ended } = await rawConnection(running.server.http, beginning);
    const drip = setInterval(() => socket.write("s"), 100);
    const began = performance.now();
    const answer = String(await ended);
    clearInterval(drip);
    expect(answer).toMatch(/^HTTP\/1.1 408 Request Timeout\r\n/u);
    expect(answer).toContain(
      "the request took too long to arrive; --http-request-timeout-secs is 1",
    );
    expect(performance.now() - began).toBeGreaterThan(900);
    expect(await good()).toBe(200);
  });

  it("ends a connection on the gRPC port that speaks something else", async () => {
    const first = await rawConnection(running.server.grpc, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const second = await rawConnection(
      running.server.grpc,
      Buffer.concat([Buffer.from(http2Preface), Buffer.alloc(1000, 0xff)]),
    );
    await Promise.all([first.ended, second.ended]);
    expect(await running.grpc.ask("ServerLive", {})).toEqual({ live: true });
  });

  it("serves others while hundreds of connections say nothing", async () => {
    const silent = await Promise.all(
      Array.from({ length: 300 }, () => rawConnection(running.server.http)),
    );
    expect(await good()).toBe(200);
    for (const { socket } of silent) socket.destroy();
  });
});
