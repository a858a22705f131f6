import { once } from "node:events";
import * as http2 from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { encodeHeaders } from "../../../gateway/http2/hpack-encoder.ts";
import type { Http2Stream } from "../../../gateway/http2/stream.ts";
import { eventually } from "../../helpers/eventually.ts";
import { EchoServer } from "./echo-server.ts";

let server: EchoServer;
let session: http2.ClientHttp2Session;

/** A connection of node's own client to a new server. */
async function connect(
  options: Parameters<typeof EchoServer.start>[0] = {},
  settings: http2.Settings = {},
): Promise<void> {
  server = await EchoServer.start(options);
  session = http2.connect(`http://127.0.0.1:${server.port}`, { settings });
  session.on("error", () => {});
  await once(session, "connect");
}

afterEach(async () => {
  session.destroy();
  await server.stop();
});

async function echoed(body: Buffer, headers: http2.OutgoingHttpHeaders = {}): Promise<Buffer> {
  const stream = session.request({ ":method": "POST", ":path": "/", ...headers });
  stream.end(body);
  return Buffer.concat(await stream.toArray());
}

function counted(length: number): Buffer {
  return Buffer.from(Uint8Array.from({ length }, (_, i) => i % 251));
}

describe("Http2Connection", () => {
  it.each([0, 1, 16_384, 16_385, 70_000, 9_000_000])("gives back %i bytes", async (length) => {
    await connect();
    const body = counted(length);
    expect((await echoed(body)).equals(body)).toBe(true);
  });

  it("serves many requests at once, of all sizes, each with its own bytes", async () => {
    await connect();
    const bodies = Array.from({ length: 100 }, (_, i) => counted((i * 7919) % 200_000));
    const answers = await Promise.all(bodies.map((body) => echoed(body)));
    expect(answers.map((answer, i) => answer.equals(bodies[i] ?? Buffer.alloc(0)))).not.toContain(
      false,
    );
    await eventually(() => expect(server.closed).toHaveLength(100));
  });

  it.each([
    ["a small one", { initialWindowSize: 10 }],
    ["none at first", { initialWindowSize: 0 }],
  ])("sends no more than a client's window takes: %s", async (_name, settings) => {
    await connect({}, settings);
    const answer = echoed(counted(1000));
    if (settings.initialWindowSize === 0) {
      await answeredPing();
      session.settings({ initialWindowSize: 100 });
    }
    expect((await answer).equals(counted(1000))).toBe(true);
  });

  it("reads a header that came twice as one, and what differs from request to request", async () => {
    await connect();
    await echoed(counted(1), { "x-many": ["a", "b"], cookie: ["c=1", "d=2"], "x-n": "1" });
    await echoed(counted(1), { "x-n": "2" });
    await echoed(counted(1), { "x-n": "2" });
    expect(server.heads.map(({ headers }) => headers["x-n"])).toEqual(["1", "2", "2"]);
    expect(server.heads[0]?.headers).toMatchObject({ "x-many": "a, b", cookie: "c=1; d=2" });
    expect(server.heads[2]?.headers).not.toHaveProperty("x-many");
  });

  it("remembers a head that comes again and again", async () => {
    await connect();
    for (let i = 0; i < 4; i++) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other is what is looked at.
      await echoed(counted(1), { "x-same": "yes" });
    }
    expect(server.heads[3]).toBe(server.heads[2]);
  });

  it("tells of a request that its client has broken off", async () => {
    await connect({ open: silent });
    const stream = session.request({ ":method": "POST", ":path": "/" });
    stream.on("error", () => {});
    await answeredPing();
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await eventually(() => expect(silentEnds).toEqual([http2.constants.NGHTTP2_CANCEL]));
  });

  it("tells of every request when a connection is gone", async () => {
    await connect({ open: silent });
    for (let i = 0; i < 3; i++) session.request({ ":path": "/" }).on("error", () => {});
    await answeredPing();
    session.destroy();
    await eventually(() => expect(silentEnds).toHaveLength(3));
  });

  it("refuses more requests at once than it allows, and takes others when one has ended", async () => {
    await connect({ maxStreams: 2, open: silent });
    session.request({ ":path": "/" }).on("error", () => {});
    session.request({ ":path": "/" }).on("error", () => {});
    await answeredPing();
    expect(session.remoteSettings.maxConcurrentStreams).toBe(2);
    expect(silentStreams).toHaveLength(2);
    silentStreams[0]?.respond(encodeHeaders({ ":status": 204 }), true);
    const third = session.request({ ":path": "/" }).on("error", () => {});
    await eventually(() => expect(silentStreams).toHaveLength(3));
    third.close();
  });

  it("says an answer before the request has come whole, and asks for no more of it", async () => {
    await connect({
      open: (stream) => stream.respond(encodeHeaders({ ":status": 413 }), true),
    });
    const stream = session.request({ ":method": "POST", ":path": "/" });
    stream.write(counted(1000));
    const [headers] = await once(stream, "response");
    expect(headers).toMatchObject({ ":status": 413 });
    await once(stream, "close");
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_NO_ERROR);
    // What the client had sent for it does not disturb the others.
    const next = session.request({ ":path": "/" });
    const [nextHeaders] = await once(next, "response");
    expect(nextHeaders).toMatchObject({ ":status": 413 });
  });

  it("answers what is under way when it is closed, and ends then", async () => {
    await connect({ open: silent });
    const stream = session.request({ ":path": "/" });
    await eventually(() => expect(silentStreams).toHaveLength(1));
    const goaway = once(session, "goaway");
    server.connections[0]?.close();
    await goaway;
    silentStreams[0]?.respond(encodeHeaders({ ":status": 200 }));
    silentStreams[0]?.write(Buffer.from("late"));
    silentStreams[0]?.end();
    const ended = once(session, "close");
    expect(Buffer.concat(await stream.toArray()).toString()).toBe("late");
    await ended;
  });

  it("holds a response back for a client that does not read, and tells the writer", async () => {
    let sent = 0;
    await connect({
      open: (stream) => {
        stream.respond(encodeHeaders({ ":status": 200 }));
        for (let i = 0; i < 100; i++) stream.write(counted(100_000), () => sent++);
        stream.end();
      },
    });
    const stream = session.request({ ":path": "/" });
    await once(stream, "response");
    await answeredPing();
    expect(sent).toBeLessThan(5);
    const body = await stream.toArray();
    expect(Buffer.concat(body)).toHaveLength(10_000_000);
    expect(sent).toBe(100);
  });

  it("says trailers behind the body, and a head that is larger than a frame", async () => {
    const long = "x".repeat(40_000);
    await connect({
      open: (stream) => {
        stream.respond(encodeHeaders({ ":status": 200, long }));
        stream.write(Buffer.from("body"));
        stream.end(encodeHeaders({ "grpc-status": "0" }));
      },
    });
    const stream = session.request({ ":path": "/" });
    stream.resume();
    const [[headers], [trailers]] = await Promise.all([
      once(stream, "response"),
      once(stream, "trailers"),
    ]);
    expect(headers.long).toBe(long);
    expect(trailers).toEqual(expect.objectContaining({ "grpc-status": "0" }));
  });

  it("cuts a connection off when something of ours fails, and tells of it", async () => {
    await connect({
      open: () => {
        throw new Error("a bug");
      },
    });
    const closed = once(session, "close");
    session.request({ ":path": "/" }).on("error", () => {});
    await closed;
    expect(server.failures.splice(0)).toEqual([new Error("a bug")]);
  });

  it("breaks off a response that its client does not take, and no other", async () => {
    await connect({
      stallMilliseconds: 50,
      open: (stream, { headers }) => {
        silentStreams.push(stream);
        if (headers[":path"] === "/quiet") return;
        stream.reader = { data: () => {}, end: () => {}, closed: (code) => silentEnds.push(code) };
        stream.respond(encodeHeaders({ ":status": 200 }));
        stream.write(counted(1_000_000));
      },
    });
    session.request({ ":path": "/quiet" }).on("error", () => {});
    session.request({ ":path": "/" }).on("error", () => {});
    await eventually(() => expect(silentEnds).toEqual([http2.constants.NGHTTP2_CANCEL]));
    expect(silentStreams.map(({ isClosed }) => isClosed)).toEqual([false, true]);
  });

  it("breaks off a request whose rest does not come, if its reader waits for it", async () => {
    await connect({
      stallMilliseconds: 50,
      open: (stream) => {
        silent(stream);
        stream.reader = { ...stream.reader, isWaiting: true };
      },
    });
    const stream = session.request({ ":method": "POST", ":path": "/" });
    stream.on("error", () => {});
    stream.write("a beginning");
    await eventually(() => expect(silentEnds).toEqual([http2.constants.NGHTTP2_CANCEL]));
  });

  it("asks whether the client is there", async () => {
    await connect();
    let answers = 0;
    server.connections[0]?.ping(() => answers++);
    await eventually(() => expect(answers).toBe(1));
  });
});

let silentStreams: Http2Stream[] = [];
let silentEnds: number[] = [];

afterEach(() => {
  silentStreams = [];
  silentEnds = [];
});

/** Takes a request and says nothing. */
function silent(stream: Http2Stream): void {
  silentStreams.push(stream);
  stream.reader = { data: () => {}, end: () => {}, closed: (code) => silentEnds.push(code) };
}

/** What was sent before it has been looked at when it resolves. */
function answeredPing(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  session.ping((error) => (error ? reject(error) : resolve()));
  return promise;
}
