import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { rawFrame } from "../gateway/http2/raw-client.ts";
import { serving } from "../helpers/serving.ts";
import { goodBody, writeEchoModels } from "./echo-models.ts";

const type = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  window: 8,
} as const;
const continuation = 9;
const [endStream, endHeaders] = [1, 4];

/** A header that is kept in no table. */
function field(name: string, value: string): Buffer {
  const [of, is] = [Buffer.from(name), Buffer.from(value)];
  return Buffer.concat([Buffer.of(0, of.length), of, Buffer.of(is.length), is]);
}

const request = Buffer.concat([
  field(":method", "POST"),
  field(":scheme", "http"),
  field(":path", "/inference.GRPCInferenceService/ModelInfer"),
  field("content-type", "application/grpc"),
  field("te", "trailers"),
]);

const [four, eight] = [Buffer.from([0, 0, 0, 8]), Buffer.alloc(8)];
const emptyMessage = Buffer.alloc(5);

/** What a client says again and again, by how often it has said it before. */
const floods: readonly (readonly [name: string, say: (times: number) => Buffer])[] = [
  [
    "requests that it breaks off at once",
    (times) =>
      Buffer.concat([
        rawFrame(type.headers, { flags: endHeaders, stream: 2 * times + 1, payload: request }),
        rawFrame(type.reset, { stream: 2 * times + 1, payload: four }),
      ]),
  ],
  [
    "requests that it never ends",
    (times) =>
      rawFrame(type.headers, { flags: endHeaders, stream: 2 * times + 1, payload: request }),
  ],
  [
    "requests whose answers it never reads",
    (times) =>
      Buffer.concat([
        rawFrame(type.headers, { flags: endHeaders, stream: 2 * times + 1, payload: request }),
        rawFrame(type.data, { flags: endStream, stream: 2 * times + 1, payload: emptyMessage }),
      ]),
  ],
  [
    "headers without an end",
    (times) =>
      times === 0
        ? rawFrame(type.headers, { stream: 1, payload: request })
        : rawFrame(continuation, {
            stream: 1,
            payload: field(`x-${times % 100}`, "y".repeat(100)),
          }),
  ],
  [
    "empty pieces of headers",
    (times) =>
      times === 0
        ? rawFrame(type.headers, { stream: 1, payload: request })
        : rawFrame(continuation, { stream: 1 }),
  ],
  [
    "empty pieces of a body",
    (times) =>
      times === 0
        ? rawFrame(type.headers, { flags: endHeaders, stream: 1, payload: request })
        : rawFrame(type.data, { stream: 1 }),
  ],
  ["settings", () => rawFrame(type.settings)],
  ["pings", () => rawFrame(type.ping, { payload: eight })],
  [
    "priorities",
    () => rawFrame(type.priority, { stream: 1, payload: Buffer.from([0, 0, 0, 3, 1]) }),
  ],
  ["windows", () => rawFrame(type.window, { payload: Buffer.from([0, 0, 0, 1]) })],
];

/** The preface, and settings that let nothing be sent to the client. */
const greeting = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  rawFrame(type.settings, { payload: Buffer.from([0, 4, 0, 0, 0, 0]) }),
]);

const floodBytes = 4 * 1024 * 1024;

/** Says it until so many bytes were taken or the server has ended the connection, and reads nothing. */
async function flood(address: string, say: (times: number) => Buffer): Promise<Socket> {
  const [host, port] = address.split(":");
  const socket = connect(Number(port), host);
  socket.on("error", () => {});
  const over = new Promise((resolve) => socket.once("close", resolve));
  socket.write(greeting);
  for (let times = 0; socket.bytesWritten < floodBytes && !socket.destroyed;) {
    const batch = Array.from({ length: 200 }, () => say(times++));
    if (socket.write(Buffer.concat(batch))) continue;
    // oxlint-disable-next-line no-await-in-loop -- as fast as it is taken
    await Promise.race([over, taken(socket)]);
    if (socket.writableLength > 0) break;
  }
  return socket;
}

/** Resolves when the server has taken what was said, or takes nothing any more. */
function taken(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, 500);
  socket.once("drain", () => {
    clearTimeout(timer);
    resolve();
  });
  return promise;
}

function residentMegabytes(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(?<kilobytes>\d+)/mu.exec(status)?.groups?.["kilobytes"]) / 1024;
}

describe("tidepool serve, flooded over HTTP/2", () => {
  const running = serving(writeEchoModels);

  it.each(floods)(
    "lives on, and stays as large as it is, when clients send %s",
    async (_, say) => {
      const { server, grpc, http } = running;
      const before = residentMegabytes(server.process.pid);
      for (let round = 0; round < 3; round++) {
        // oxlint-disable-next-line no-await-in-loop -- one wave after the other
        const sockets = await Promise.all([1, 2, 3].map(() => flood(server.grpc, say)));
        // oxlint-disable-next-line no-await-in-loop -- while they are open
        expect(await grpc.ask("ServerLive", {})).toEqual({ live: true });
        // oxlint-disable-next-line no-await-in-loop -- while they are open
        expect((await http.infer("list", goodBody)).status).toBe(200);
        for (const socket of sockets) socket.destroy();
      }
      expect(residentMegabytes(server.process.pid) - before).toBeLessThan(150);
    },
    60_000,
  );
});
