import { once } from "node:events";
import { connect } from "node:net";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeHeaders } from "../../../gateway/http2/hpack-encoder.ts";
import { ErrorCode, Flag, FrameType, preface } from "../../../gateway/http2/wire.ts";
import { eventually } from "../../helpers/eventually.ts";
import { EchoServer } from "./echo-server.ts";
import { RawClient, rawFrame } from "./raw-client.ts";

const { Data, Headers, Priority, RstStream, Settings, PushPromise, Ping, GoAway } = FrameType;
const { WindowUpdate, Continuation } = FrameType;
const { EndStream, EndHeaders, Padded, Ack } = Flag;

const request = hex({ ":method": "POST", ":scheme": "http", ":path": "/" });
const whole = EndStream | EndHeaders;

function hex(fields: Parameters<typeof encodeHeaders>[0]): string {
  return encodeHeaders(fields).toString("hex");
}

/** The frame that begins a request on a stream. */
function headers(stream: number, payload = request, flags: number = whole): Buffer {
  return rawFrame(Headers, { flags, stream, payload });
}

function setting(name: number, value: number): Buffer {
  const payload = Buffer.alloc(6);
  payload.writeUInt16BE(name, 0);
  payload.writeUInt32BE(value, 2);
  return rawFrame(Settings, { payload: payload.toString("hex") });
}

let server: EchoServer;
let client: RawClient;
beforeEach(async () => {
  server = await EchoServer.start();
  client = await RawClient.connect(server.port);
});
afterEach(async () => {
  client.socket.destroy();
  await server.stop();
});

/** A request that is broken off as soon as it has begun. */
function rapid(id: number): Buffer {
  const broken = rawFrame(RstStream, { stream: id, payload: "00000008" });
  return Buffer.concat([headers(id, request, EndHeaders), broken]);
}

async function goAway(): Promise<number> {
  const { payload } = await client.frame(({ type }) => type === GoAway);
  return payload.readUInt32BE(4);
}

async function reset(): Promise<number> {
  const { payload } = await client.frame(({ type }) => type === RstStream);
  return payload.readUInt32BE(0);
}

describe("what a connection ends for", () => {
  it.each([
    ["DATA for no stream", ErrorCode.ProtocolError, rawFrame(Data)],
    [
      "DATA for a stream that has not begun",
      ErrorCode.ProtocolError,
      rawFrame(Data, { stream: 1 }),
    ],
    ["HEADERS for no stream", ErrorCode.ProtocolError, headers(0)],
    ["HEADERS for an even stream", ErrorCode.ProtocolError, headers(2)],
    ["HEADERS that end amid a field", ErrorCode.CompressionError, headers(1, "40")],
    [
      "HEADERS padded by more than there is",
      ErrorCode.ProtocolError,
      rawFrame(Headers, { flags: whole | Padded, stream: 1, payload: "0582" }),
    ],
    [
      "HEADERS padded by nothing at all",
      ErrorCode.ProtocolError,
      rawFrame(Headers, { flags: whole | Padded, stream: 1 }),
    ],
    [
      "HEADERS that depend on themselves",
      ErrorCode.ProtocolError,
      headers(1, `0000000110${request}`, whole | Flag.Priority),
    ],
    [
      "HEADERS with half a priority",
      ErrorCode.FrameSizeError,
      headers(1, "000000", whole | Flag.Priority),
    ],
    [
      "another frame amid a header block",
      ErrorCode.ProtocolError,
      Buffer.concat([headers(1, request, EndStream), rawFrame(Ping, { payload: "00".repeat(8) })]),
    ],
    [
      "DATA amid a header block",
      ErrorCode.ProtocolError,
      Buffer.concat([headers(1, request, EndStream), rawFrame(Data, { stream: 1 })]),
    ],
    [
      "CONTINUATION of another stream",
      ErrorCode.ProtocolError,
      Buffer.concat([headers(1, request, EndStream), rawFrame(Continuation, { stream: 3 })]),
    ],
    ["CONTINUATION of nothing", ErrorCode.ProtocolError, rawFrame(Continuation, { stream: 1 })],
    [
      "RST_STREAM for no stream",
      ErrorCode.ProtocolError,
      rawFrame(RstStream, { payload: "00000000" }),
    ],
    [
      "RST_STREAM for a stream that has not begun",
      ErrorCode.ProtocolError,
      rawFrame(RstStream, { stream: 1, payload: "00000000" }),
    ],
    [
      "RST_STREAM of another length",
      ErrorCode.FrameSizeError,
      rawFrame(RstStream, { stream: 1, payload: "00" }),
    ],
    [
      "PRIORITY for no stream",
      ErrorCode.ProtocolError,
      rawFrame(Priority, { payload: "0000000000" }),
    ],
    [
      "PUSH_PROMISE",
      ErrorCode.ProtocolError,
      rawFrame(PushPromise, { stream: 1, payload: "00000000" }),
    ],
    ["SETTINGS for a stream", ErrorCode.ProtocolError, rawFrame(Settings, { stream: 1 })],
    [
      "SETTINGS of half an entry",
      ErrorCode.FrameSizeError,
      rawFrame(Settings, { payload: "000100" }),
    ],
    [
      "SETTINGS of too many entries",
      ErrorCode.FrameSizeError,
      rawFrame(Settings, { payload: "000800000000".repeat(33) }),
    ],
    [
      "SETTINGS that say yes and more",
      ErrorCode.FrameSizeError,
      rawFrame(Settings, { flags: Ack, payload: "000100000000" }),
    ],
    ["ENABLE_PUSH of 2", ErrorCode.ProtocolError, setting(2, 2)],
    ["INITIAL_WINDOW_SIZE of 2^31", ErrorCode.FlowControlError, setting(4, 2 ** 31)],
    ["MAX_FRAME_SIZE of 16,383", ErrorCode.ProtocolError, setting(5, 16_383)],
    ["MAX_FRAME_SIZE of 2^24", ErrorCode.ProtocolError, setting(5, 2 ** 24)],
    [
      "PING for a stream",
      ErrorCode.ProtocolError,
      rawFrame(Ping, { stream: 1, payload: "00".repeat(8) }),
    ],
    ["PING of another length", ErrorCode.FrameSizeError, rawFrame(Ping, { payload: "00" })],
    [
      "GOAWAY for a stream",
      ErrorCode.ProtocolError,
      rawFrame(GoAway, { stream: 1, payload: "00".repeat(8) }),
    ],
    [
      "WINDOW_UPDATE of nothing",
      ErrorCode.ProtocolError,
      rawFrame(WindowUpdate, { payload: "00000000" }),
    ],
    [
      "WINDOW_UPDATE beyond the largest window",
      ErrorCode.FlowControlError,
      rawFrame(WindowUpdate, { payload: "7fffffff" }),
    ],
    [
      "WINDOW_UPDATE for a stream that has not begun",
      ErrorCode.ProtocolError,
      rawFrame(WindowUpdate, { stream: 1, payload: "00000001" }),
    ],
    [
      "WINDOW_UPDATE of another length",
      ErrorCode.FrameSizeError,
      rawFrame(WindowUpdate, { payload: "000001" }),
    ],
    [
      "a frame that is too long",
      ErrorCode.FrameSizeError,
      rawFrame(Settings, { payload: "00".repeat(65_537) }),
    ],
  ])("%s", async (_name, code, bytes) => {
    client.socket.write(bytes);
    expect(await goAway()).toBe(code);
    await once(client.socket, "close");
  });

  it.each([
    ["DATA", rawFrame(Data, { stream: 1 })],
    ["HEADERS", headers(1)],
  ])("%s for a stream that has ended", async (_name, bytes) => {
    client.socket.write(headers(1));
    await client.frame(({ type, flags }) => type === Data && (flags & EndStream) !== 0);
    client.socket.write(bytes);
    expect(await goAway()).toBe(ErrorCode.StreamClosed);
  });

  it("a greeting that is none, without an answer", async () => {
    const socket = connect(server.port, "127.0.0.1");
    socket.resume();
    socket.write("GET / HTTP/1.1\r\n\r\n");
    await once(socket, "close");
    expect(server.heads).toEqual([]);
  });

  it("anything before SETTINGS", async () => {
    const socket = connect(server.port, "127.0.0.1");
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.write(Buffer.concat([preface, rawFrame(Ping, { payload: "00".repeat(8) })]));
    await once(socket, "close");
    expect(Buffer.concat(chunks).toString("latin1")).toContain(
      "first frame: given type 6, expected SETTINGS",
    );
  });
});

describe("what a request is broken off for", () => {
  it.each([
    ["no method", hex({ ":scheme": "http", ":path": "/" })],
    ["no scheme", hex({ ":method": "GET", ":path": "/" })],
    ["no path", hex({ ":method": "GET", ":scheme": "http" })],
    ["an empty path", hex({ ":method": "GET", ":scheme": "http", ":path": "" })],
    ["an unknown pseudo header", request + hex({ ":other": "1" })],
    ["a pseudo header of responses", request + hex({ ":status": 200 })],
    ["a pseudo header twice", request + hex({ ":path": "/" })],
    ["a pseudo header behind others", hex({ a: "b" }) + request],
    ["a header in upper case", `${request}0003582d590131`],
    ["a header without a name", `${request}00000131`],
    ["a line break in a value", request + hex({ a: "b\r\nc: d" })],
    ["a control character in a value", request + hex({ a: "b\u0001" })],
    ["connection", request + hex({ connection: "keep-alive" })],
    ["transfer-encoding", request + hex({ "transfer-encoding": "chunked" })],
    ["te other than trailers", request + hex({ te: "gzip" })],
    ["a length that is no number", request + hex({ "content-length": "-1" })],
    ["a length without a body", request + hex({ "content-length": "1" })],
  ])("%s", async (_name, block) => {
    client.socket.write(headers(1, block));
    expect(await reset()).toBe(ErrorCode.ProtocolError);
    // The others do not mind.
    client.socket.write(headers(3));
    await client.frame(({ type, stream }) => type === Headers && stream === 3);
  });

  it.each([
    [
      "a body longer than announced",
      ErrorCode.ProtocolError,
      rawFrame(Data, { flags: EndStream, stream: 1, payload: "000000" }),
    ],
    [
      "a body shorter than announced",
      ErrorCode.ProtocolError,
      rawFrame(Data, { flags: EndStream, stream: 1, payload: "00" }),
    ],
    [
      "a second head that does not end it",
      ErrorCode.ProtocolError,
      headers(1, hex({ a: "b" }), EndHeaders),
    ],
    ["trailers with a pseudo header", ErrorCode.ProtocolError, headers(1, request)],
    [
      "a window of nothing",
      ErrorCode.ProtocolError,
      rawFrame(WindowUpdate, { stream: 1, payload: "00000000" }),
    ],
    [
      "too large a window",
      ErrorCode.FlowControlError,
      rawFrame(WindowUpdate, { stream: 1, payload: "7fffffff" }),
    ],
    ["half a priority", ErrorCode.FrameSizeError, rawFrame(Priority, { stream: 1, payload: "00" })],
  ])("%s", async (_name, code, bytes) => {
    client.socket.write(headers(1, request + hex({ "content-length": "2" }), EndHeaders));
    client.socket.write(bytes);
    expect(await reset()).toBe(code);
  });

  it("more than its window", async () => {
    const held = await EchoServer.start({
      open: (stream) => (stream.reader = { data: () => {}, end: () => {}, closed: () => {} }),
    });
    const greedy = await RawClient.connect(held.port);
    greedy.socket.write(headers(1, request, EndHeaders));
    const piece = rawFrame(Data, { stream: 1, payload: "00".repeat(1024 * 1024) });
    for (let i = 0; i < 5; i++) greedy.socket.write(piece);
    const { payload } = await greedy.frame(({ type }) => type === RstStream);
    expect(payload.readUInt32BE()).toBe(ErrorCode.FlowControlError);
    greedy.socket.destroy();
    await held.stop();
  });

  it("more headers than a list may hold", async () => {
    const field = hex({ "x-long": "y".repeat(1000) });
    client.socket.write(headers(1, request + field.repeat(64)));
    expect(await reset()).toBe(ErrorCode.EnhanceYourCalm);
  });

  it("trailers are read, and nobody is told of them", async () => {
    client.socket.write(headers(1, request, EndHeaders));
    client.socket.write(rawFrame(Data, { stream: 1, payload: "0102" }));
    client.socket.write(headers(1, hex({ checksum: "3" })));
    const { payload } = await client.frame(({ type, stream }) => type === Data && stream === 1);
    expect(payload.toString("hex")).toBe("0102");
  });

  it("padding is no part of a body, and costs no window for good", async () => {
    client.socket.write(headers(1, request, EndHeaders));
    for (let i = 0; i < 300; i++) {
      const padded = {
        flags: Padded,
        stream: 1,
        payload: `80${"01".repeat(40_000)}${"00".repeat(128)}`,
      };
      client.socket.write(rawFrame(Data, padded));
    }
    client.socket.write(rawFrame(Data, { flags: EndStream, stream: 1 }));
    client.socket.write(rawFrame(WindowUpdate, { payload: "00ffffff" }));
    client.socket.write(rawFrame(WindowUpdate, { stream: 1, payload: "00ffffff" }));
    await client.frame(({ type, flags }) => type === Data && (flags & EndStream) !== 0);
    const body = client.frames.filter(({ type }) => type === Data);
    expect(Buffer.concat(body.map(({ payload }) => payload))).toHaveLength(300 * 40_000);
  });
});

describe("what a connection bears", () => {
  it("frames of types that nobody knows", async () => {
    client.socket.write(rawFrame(0x16, { flags: 255, stream: 5, payload: "0102" }));
    client.socket.write(headers(1));
    expect(await client.frame(({ type }) => type === Headers)).toMatchObject({ stream: 1 });
  });

  it("no more than a thousand requests that are broken off at once", async () => {
    for (let i = 0; i < 2000; i++) client.socket.write(rapid(2 * i + 1));
    expect(await goAway()).toBe(ErrorCode.EnhanceYourCalm);
    expect(server.heads.length).toBeLessThan(1200);
  });

  it("no more than a thousand changes of all windows at once", async () => {
    for (let i = 0; i < 2000; i++) client.socket.write(setting(4, 65_536 + (i % 2)));
    expect(await goAway()).toBe(ErrorCode.EnhanceYourCalm);
  });

  it("no header block without an end", async () => {
    client.socket.write(headers(1, request, EndStream));
    for (let i = 0; i < 100; i++) client.socket.write(rawFrame(Continuation, { stream: 1 }));
    expect(await goAway()).toBe(ErrorCode.EnhanceYourCalm);
  });

  it("no client that asks and asks and never reads", async () => {
    client.socket.pause();
    const ping = rawFrame(Ping, { payload: "00".repeat(8) });
    const many = Buffer.concat(Array.from({ length: 10_000 }, () => ping));
    let written = 0;
    while (written < 3000 && client.socket.writableLength < 64 * 1024 * 1024) {
      client.socket.write(many);
      written++;
    }
    await eventually(() => expect(server.connections[0]?.socket.isPaused()).toBe(true));
    expect(server.connections[0]?.socket.writableLength).toBeLessThan(8 * 1024 * 1024);
  });

  it("any bytes at all, without failing", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 4 }),
        async (chunks) => {
          const fuzzed = await RawClient.connect(server.port);
          for (const chunk of chunks) fuzzed.socket.write(chunk);
          fuzzed.socket.end();
          await once(fuzzed.socket, "close");
          expect(server.failures).toEqual([]);
        },
      ),
      { numRuns: 200 },
    );
  });
});
