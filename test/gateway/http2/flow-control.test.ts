import { describe, expect, it } from "vitest";
import { encodeHeaders } from "../../../gateway/http2/hpack-encoder.ts";
import type { Http2Stream } from "../../../gateway/http2/stream.ts";
import { Flag, FrameType } from "../../../gateway/http2/wire.ts";
import { eventually } from "../../helpers/eventually.ts";
import { connecting } from "./connecting.ts";
import type { EchoServer } from "./echo-server.ts";
import { type RawClient, rawFrame } from "./raw-client.ts";

const { Data, Headers, Ping, RstStream, Settings, WindowUpdate } = FrameType;
const { EndStream, EndHeaders } = Flag;

const request = encodeHeaders({ ":method": "POST", ":scheme": "http", ":path": "/" });
const head = encodeHeaders({ ":status": 200 });
const megabyte = 1024 * 1024;

let server: EchoServer;
let client: RawClient;
const connect = connecting((...both) => ([server, client] = both));

function headers(stream: number, flags: number = EndHeaders | EndStream): Buffer {
  return rawFrame(Headers, { flags, stream, payload: request.toString("hex") });
}

function number(value: number): string {
  return value.toString(16).padStart(8, "0");
}

/** Lets the server send as much as it likes. */
function openWindows(): void {
  client.socket.write(rawFrame(Settings, { payload: `0004${number(2 ** 31 - 1)}` }));
  client.socket.write(rawFrame(WindowUpdate, { payload: number(2 ** 31 - 1 - 65_535) }));
}

/** Answers each request with so many bytes. */
function answering(bytes: number, streams: Http2Stream[] = []) {
  return (stream: Http2Stream): void => {
    streams.push(stream);
    stream.respond(head);
    stream.write(Buffer.alloc(bytes));
    stream.end();
  };
}

/** What was sent before it has been looked at when it resolves. */
async function answeredPing(): Promise<void> {
  const payload = number(client.frames.length).padStart(16, "0");
  client.socket.write(rawFrame(Ping, { payload }));
  await client.frame(
    ({ type, payload: answer }) => type === Ping && answer.toString("hex") === payload,
  );
}

describe("flow control", () => {
  it("hears a client that breaks off a large answer which it does not read", async () => {
    const streams: Http2Stream[] = [];
    await connect({ open: answering(100 * megabyte, streams) });
    openWindows();
    client.socket.write(headers(1));
    await client.frame(({ type }) => type === Data);
    client.socket.pause();
    client.socket.write(rawFrame(WindowUpdate, { payload: number(1) }));
    client.socket.write(rawFrame(RstStream, { stream: 1, payload: number(8) }));
    await eventually(() => expect(streams[0]?.isClosed).toBe(true));
  });

  it("takes other requests while bodies wait that nobody reads", async () => {
    const unread: Http2Stream[] = [];
    await connect({
      open: (stream) => {
        if (unread.length === 4) return answering(1)(stream);
        unread.push(stream);
      },
    });
    const piece = "00".repeat(megabyte);
    for (const id of [1, 3, 5, 7]) {
      client.socket.write(headers(id, EndHeaders));
      for (let i = 0; i < 4; i++)
        client.socket.write(rawFrame(Data, { stream: id, payload: piece }));
    }
    await answeredPing();
    const widened = client.frames.filter(
      ({ type, stream }) => type === WindowUpdate && stream === 0,
    );
    const sum = widened.reduce((total, { payload }) => total + payload.readUInt32BE(), 65_535);
    expect(sum - 16 * megabyte).toBeGreaterThan(megabyte);
    expect(unread).toHaveLength(4);
  });

  it("gives large answers their turns, so that none waits for another's end", async () => {
    await connect({ open: answering(40 * megabyte) });
    openWindows();
    client.socket.pause();
    client.socket.write(Buffer.concat([headers(1), headers(3)]));
    await eventually(() => expect(server.heads).toHaveLength(2));
    client.socket.resume();
    await client.frame(({ type, stream, flags }) => type === Data && stream === 3 && flags === 0);
    const before = client.frames.filter(({ type, stream }) => type === Data && stream === 1);
    const bytes = before.reduce((total, { payload }) => total + payload.length, 0);
    expect(bytes).toBeLessThan(20 * megabyte);
  });
});
