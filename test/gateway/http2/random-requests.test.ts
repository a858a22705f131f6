import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Flag, FrameType, initial } from "../../../gateway/http2/wire.ts";
import { eventually } from "../../helpers/eventually.ts";
import { EchoServer } from "./echo-server.ts";
import { type Random, randomOf, randomRequests } from "./random-requests.ts";
import { RawClient, type RawFrame, rawFrame } from "./raw-client.ts";

const { Data, GoAway, Headers, RstStream, Settings, WindowUpdate } = FrameType;

let server: EchoServer;
beforeAll(async () => {
  server = await EchoServer.start();
});
afterAll(() => server.stop());

/** Says frames in pieces, and waits between these now and then. @param between gives what else is to be said */
async function say(
  client: RawClient,
  random: Random,
  frames: readonly Buffer[],
  between: () => readonly Buffer[] = () => [],
): Promise<void> {
  for (const frame of frames) {
    for (const other of between()) client.socket.write(other);
    for (let at = 0; at < frame.length;) {
      const end = at + 1 + random(random(2) === 0 ? 30 : 20_000);
      client.socket.write(frame.subarray(at, end));
      at = end;
      // oxlint-disable-next-line no-await-in-loop -- the pieces should come one by one.
      if (random(4) === 0) await setImmediate();
    }
  }
}

function number(value: number): string {
  return value.toString(16).padStart(8, "0");
}

/** Takes answers as it gives windows for them, and remembers what was sent beyond these. */
class Taker {
  readonly bodies = new Map<number, Buffer[]>();
  readonly ended: number[] = [];
  readonly faults: RawFrame[] = [];
  readonly #windowBytes: number;
  /** Of windows, by stream; 0 for the connection. */
  readonly #taken = new Map<number, number>();

  constructor(client: RawClient, windowBytes: number) {
    this.#windowBytes = windowBytes;
    client.onFrame = (frame) => this.#take(frame);
    client.socket.write(rawFrame(Settings, { payload: `0004${number(windowBytes)}` }));
  }

  /** Gives back what was taken of windows. */
  windows(): readonly Buffer[] {
    const taken = [...this.#taken];
    this.#taken.clear();
    return taken.map(([stream, bytes]) =>
      rawFrame(WindowUpdate, { stream, payload: number(bytes) }),
    );
  }

  #take(frame: RawFrame): void {
    const { type, flags, stream, payload } = frame;
    if (type === RstStream || type === GoAway) this.faults.push(frame);
    if (type !== Data) return;
    this.bodies.set(stream, [...(this.bodies.get(stream) ?? []), payload]);
    if ((flags & Flag.EndStream) !== 0) this.ended.push(stream);
    if (payload.length === 0) return;
    for (const [id, windowBytes] of [
      [stream, this.#windowBytes],
      [0, initial.windowBytes],
    ] as const) {
      const taken = (this.#taken.get(id) ?? 0) + payload.length;
      this.#taken.set(id, taken);
      if (taken > windowBytes) this.faults.push(frame);
    }
  }
}

describe("Http2Connection, told of requests in any way there is", () => {
  it("sees each as it was meant, and gives each its own answer within the windows", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.integer({ min: 100, max: 100_000 }), async (seed, window) => {
        const random = randomOf(seed);
        const { requests, frames } = randomRequests(random, Math.min(30 * window, 300_000));
        server.heads.length = 0;
        const client = await RawClient.connect(server.port);
        const taker = new Taker(client, window);
        await say(client, random, frames, () => taker.windows());
        await eventually(() => {
          for (const given of taker.windows()) client.socket.write(given);
          expect(taker.faults).toEqual([]);
          expect(taker.ended).toHaveLength(requests.length);
        });
        expect(server.heads.map(({ headers }) => ({ ...headers }))).toEqual(
          requests.map(({ headers }) => headers),
        );
        for (const { stream, body } of requests) {
          expect(Buffer.concat(taker.bodies.get(stream) ?? []).equals(body)).toBe(true);
        }
        client.socket.destroy();
      }),
      { numRuns: 40, endOnFailure: true },
    );
  }, 60_000);

  it("answers or ends, and never fails, when some of the bytes are others", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        const random = randomOf(seed);
        const bytes = Buffer.concat(randomRequests(random, 1000).frames);
        for (let i = 0; i <= random(5); i++) bytes[random(bytes.length)] = random(256);
        const client = await RawClient.connect(server.port);
        await say(client, random, [bytes]);
        client.socket.end();
        if (!client.socket.closed) await once(client.socket, "close");
        expect(server.failures).toEqual([]);
      }),
      { numRuns: 300, endOnFailure: true },
    );
    const client = await RawClient.connect(server.port);
    const [request] = randomRequests(randomOf(1), 10).frames;
    if (request) client.socket.write(request);
    client.socket.write(rawFrame(Data, { flags: Flag.EndStream, stream: 1 }));
    expect(await client.frame(({ type }) => type === Headers)).toMatchObject({ stream: 1 });
    client.socket.destroy();
  }, 60_000);
});
