import { describe, expect, it } from "vitest";
import { encodeHeaders } from "../../../gateway/http2/hpack-encoder.ts";
import type { Http2Stream } from "../../../gateway/http2/stream.ts";
import { ErrorCode, Flag, FrameType } from "../../../gateway/http2/wire.ts";
import { connecting } from "./connecting.ts";
import type { EchoServer } from "./echo-server.ts";
import { type RawClient, rawFrame } from "./raw-client.ts";

const { Data, GoAway, Headers, Ping, Priority, RstStream, WindowUpdate } = FrameType;

const request = encodeHeaders({ ":method": "POST", ":scheme": "http", ":path": "/" });

let server: EchoServer;
let client: RawClient;
const connect = connecting((...both) => ([server, client] = both));

function headers(stream: number): Buffer {
  return rawFrame(Headers, { flags: Flag.EndHeaders, stream, payload: request.toString("hex") });
}

async function goAway(): Promise<number> {
  const { payload } = await client.frame(({ type }) => type === GoAway);
  return payload.readUInt32BE(4);
}

describe("a request that is broken off", () => {
  it("does not harm its connection by what was under way for it, however many there are", async () => {
    const refusal = encodeHeaders({ ":status": 413 });
    await connect({ maxStreams: 1000, open: (stream) => stream.respond(refusal, true) });
    const ids = Array.from({ length: 1500 }, (_, i) => 2 * i + 1);
    client.socket.write(Buffer.concat(ids.map(headers)));
    await client.frame(({ type, stream }) => type === RstStream && stream === 2999);
    const late = ids.map((stream) =>
      rawFrame(Data, { flags: Flag.EndStream, stream, payload: "00" }),
    );
    client.socket.write(Buffer.concat([...late, rawFrame(Ping, { payload: "00".repeat(8) })]));
    await client.frame(({ type }) => type === Ping);
    expect(client.frames.some(({ type }) => type === GoAway)).toBe(false);
  });

  it("is over for both sides when its client gives it a wrong priority", async () => {
    const streams: Http2Stream[] = [];
    await connect({ open: (stream) => streams.push(stream) });
    client.socket.write(headers(1));
    client.socket.write(rawFrame(Priority, { stream: 1, payload: "00" }));
    await client.frame(({ type }) => type === RstStream);
    expect(streams.map(({ isClosed }) => isClosed)).toEqual([true]);
  });

  it.each([
    [
      "a window of nothing",
      (stream: number) => rawFrame(WindowUpdate, { stream, payload: "00000000" }),
    ],
    ["half a priority", (stream: number) => rawFrame(Priority, { stream, payload: "00" })],
    ["a second head", (stream: number) => headers(stream)],
  ])("counts also where the client has us break it off: by %s", async (_name, fault) => {
    await connect({ open: () => {} });
    for (let i = 0; i < 2000; i++) {
      client.socket.write(Buffer.concat([headers(2 * i + 1), fault(2 * i + 1)]));
    }
    expect(await goAway()).toBe(ErrorCode.EnhanceYourCalm);
    expect(server.heads.length).toBeLessThan(1200);
  });
});

describe("a connection that is closed", () => {
  it("answers the requests that were under way when its client heard of it", async () => {
    await connect({ open: (stream) => stream.respond(encodeHeaders({ ":status": 200 }), true) });
    server.connections[0]?.close();
    // It has been sent before the client could know.
    client.socket.write(headers(1));
    const { flags } = await client.frame(({ type, stream }) => type === Headers && stream === 1);
    expect(flags & Flag.EndStream).toBe(Flag.EndStream);
  });
});
