import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { encodeHeaders } from "../../../gateway/http2/hpack-encoder.ts";
import { NodeSession } from "../../../gateway/http2/node-session.ts";
import { NodeStream } from "../../../gateway/http2/node-stream.ts";
import { Flag, FrameType } from "../../../gateway/http2/wire.ts";
import { eventually } from "../../helpers/eventually.ts";
import { connecting } from "./connecting.ts";
import type { EchoServer } from "./echo-server.ts";
import { type RawClient, rawFrame } from "./raw-client.ts";

const { Data, Headers, Ping, RstStream, WindowUpdate } = FrameType;

const request = encodeHeaders({ ":method": "POST", ":scheme": "http", ":path": "/" });

let server: EchoServer;
let client: RawClient;
let streams: NodeStream[] = [];

const open = connecting((...both) => ([server, client] = both));

/** A client of a server that gives each request to node's kind of stream. */
function connect(): Promise<void> {
  streams = [];
  return open({
    open: (stream) => {
      const [connection] = server.connections;
      if (connection) streams.push(new NodeStream(stream, new NodeSession(connection)));
    },
  });
}

/** The stream of a new request. @param flags of its head */
async function opened(flags: number): Promise<NodeStream> {
  const id = 2 * streams.length + 1;
  client.socket.write(rawFrame(Headers, { flags, stream: id, payload: request.toString("hex") }));
  await eventually(() => expect(streams).toHaveLength(Math.ceil(id / 2)));
  const stream = streams.at(-1);
  if (!stream) throw new Error("no stream has begun");
  return stream;
}

describe("NodeStream", () => {
  it("says its trailers once, also when they have waited for a body that had to wait", async () => {
    await connect();
    const stream = await opened(Flag.EndHeaders | Flag.EndStream);
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": 0 }));
    stream.respond({}, { waitForTrailers: true });
    stream.write(Buffer.alloc(100_000), () => stream.end());
    await client.frame(({ type }) => type === Data);
    for (const id of [0, 1]) {
      client.socket.write(rawFrame(WindowUpdate, { stream: id, payload: "00ffffff" }));
    }
    await client.frame(({ type, flags }) => type === Headers && (flags & Flag.EndStream) !== 0);
    client.socket.write(rawFrame(Ping, { payload: "00".repeat(8) }));
    await client.frame(({ type }) => type === Ping);
    expect(client.frames.filter(({ type }) => type === Headers)).toHaveLength(2);
  });

  it("is over when its client breaks off a whole request without a reason", async () => {
    await connect();
    const stream = await opened(Flag.EndHeaders | Flag.EndStream);
    const closed = once(stream, "close");
    client.socket.write(rawFrame(RstStream, { stream: 1, payload: "00000000" }));
    await closed;
    expect(stream.destroyed).toBe(true);
  });
});
