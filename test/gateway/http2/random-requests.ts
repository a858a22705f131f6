import { staticTable } from "../../../gateway/http2/hpack-tables.ts";
import { Flag, FrameType } from "../../../gateway/http2/wire.ts";
import { rawFrame } from "./raw-client.ts";

/** Gives a whole number from 0 on that is smaller than this one. */
export type Random = (below: number) => number;

/** The same numbers for the same seed. */
export function randomOf(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c_1b_3c_6d) + 0x9e_37_79_b9) | 0;
    return ((state ^ (state >>> 12)) >>> 0) % below;
  };
}

export interface RandomRequest {
  readonly stream: number;
  /** Its headers as a server should see them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Requests, and frames that say them in one of many ways. */
export interface RandomRequests {
  readonly requests: readonly RandomRequest[];
  readonly frames: readonly Buffer[];
}

/** Many requests at once, with their frames mixed, and others between them that change nothing. */
export function randomRequests(random: Random, maxBodyBytes: number): RandomRequests {
  const encoder = new RandomEncoder(random);
  const requests = Array.from({ length: 1 + random(20) }, (_, i) => ({
    stream: 2 * i + 1,
    headers: {
      ":method": "POST",
      ":scheme": "http",
      ":path": `/${random(3)}`,
      "x-number": String(random(4)),
      ...(random(2) === 0 && { "x-long": "y".repeat(random(600)) }),
    },
    body: Buffer.alloc(random(3) === 0 ? random(maxBodyBytes) : random(50), i + 1),
  }));
  const frames: Buffer[] = [];
  const bodies: Buffer[][] = [];
  let next = 0;
  while (next < requests.length || bodies.length > 0) {
    const request = requests[next];
    if (request && (bodies.length === 0 || random(3) === 0)) {
      frames.push(head(random, request, encoder.block(request.headers)));
      bodies.push(body(random, request));
      next++;
    } else {
      const chosen = random(bodies.length);
      const [frame] = bodies[chosen]?.splice(0, 1) ?? [];
      if (frame) frames.push(frame);
      if (bodies[chosen]?.length === 0) bodies.splice(chosen, 1);
    }
    if (random(4) === 0) frames.push(aside(random, 2 * next + 1));
  }
  return { requests, frames };
}

/** HEADERS, and CONTINUATION where the block is cut. */
function head(random: Random, { stream }: RandomRequest, block: Buffer): Buffer {
  const cuts = Array.from({ length: random(4) }, () => random(block.length + 1)).toSorted(
    (a, b) => a - b,
  );
  const pieces = [...cuts, block.length].map((end, i) => block.subarray(cuts[i - 1] ?? 0, end));
  return Buffer.concat(
    pieces.map((piece, i) => {
      const ends = i === pieces.length - 1 ? Flag.EndHeaders : Flag.None;
      if (i > 0) return frameOf(FrameType.Continuation, ends, stream, piece);
      const priority = random(2) === 0 ? Buffer.of(0, 0, 0, stream + 2, 7) : Buffer.alloc(0);
      const flags = ends | (priority.length > 0 ? Flag.Priority : Flag.None);
      return padded(random, { type: FrameType.Headers, flags, stream }, [priority, piece]);
    }),
  );
}

/** DATA, of which the last ends the stream, or trailers behind it. */
function body(random: Random, { stream, body: bytes }: RandomRequest): Buffer[] {
  const frames: Buffer[] = [];
  const hasTrailers = random(4) === 0;
  for (let at = 0; at < bytes.length || frames.length === 0;) {
    const end =
      at + Math.min(random(4) === 0 ? random(100_000) : 1 + random(100), bytes.length - at);
    const flags = end === bytes.length && !hasTrailers ? Flag.EndStream : Flag.None;
    frames.push(padded(random, { type: FrameType.Data, flags, stream }, [bytes.subarray(at, end)]));
    if (end === bytes.length) break;
    at = end;
  }
  const last = Flag.EndHeaders | Flag.EndStream;
  if (hasTrailers)
    frames.push(frameOf(FrameType.Headers, last, stream, Buffer.from("\0\u0001a\u0001b")));
  return frames;
}

/** A frame that says nothing of requests. */
function aside(random: Random, stream: number): Buffer {
  const kinds = [
    () => frameOf(FrameType.Ping, Flag.None, 0, Buffer.alloc(8, random(256))),
    () => frameOf(FrameType.Priority, Flag.None, stream, Buffer.of(0, 0, 0, 0, random(256))),
    () => frameOf(0x20 + random(100), random(256), random(100), Buffer.alloc(random(300))),
    () => frameOf(FrameType.Settings, Flag.None, 0, Buffer.of(0, 9, 0, 0, 0, 1)),
  ];
  return kinds[random(kinds.length)]?.() ?? Buffer.alloc(0);
}

interface FrameHead {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
}

function padded(random: Random, { type, flags, stream }: FrameHead, payload: Buffer[]): Buffer {
  if (random(3) > 0) return frameOf(type, flags, stream, ...payload);
  const length = random(256);
  const padding = Buffer.alloc(length);
  return frameOf(type, flags | Flag.Padded, stream, Buffer.of(length), ...payload, padding);
}

// oxlint-disable-next-line max-params -- the parts of a frame, in their order on the wire.
function frameOf(type: number, flags: number, stream: number, ...payload: Buffer[]): Buffer {
  return rawFrame(type, { flags, stream, payload: Buffer.concat(payload).toString("hex") });
}

/** Says fields in any of the ways there are, and keeps the table that the other side must keep. */
class RandomEncoder {
  readonly #random: Random;
  #table: { name: string; value: string }[] = [];
  #tableBytes = 4096;

  constructor(random: Random) {
    this.#random = random;
  }

  block(headers: Readonly<Record<string, string>>): Buffer {
    const pieces: Buffer[] = [];
    if (this.#random(6) === 0) {
      this.#tableBytes = this.#random(4097);
      this.#evict(0);
      pieces.push(integer(0x20, 5, this.#tableBytes));
    }
    for (const [name, value] of Object.entries(headers)) pieces.push(this.#field(name, value));
    return Buffer.concat(pieces);
  }

  #field(name: string, value: string): Buffer {
    const known = [...staticTable, ...this.#table];
    const whole = known.findIndex((field) => field.name === name && field.value === value) + 1;
    if (whole > 0 && this.#random(4) > 0) return integer(0x80, 7, whole);
    const index = this.#random(2) * (known.findLastIndex((field) => field.name === name) + 1);
    const rest = [...(index > 0 ? [] : [text(name)]), text(value)];
    const kind = this.#random(3);
    if (kind < 2) return Buffer.concat([integer(kind * 0x10, 4, index), ...rest]);
    const bytes = name.length + value.length + 32;
    this.#evict(bytes);
    if (bytes <= this.#tableBytes) this.#table.unshift({ name, value });
    return Buffer.concat([integer(0x40, 6, index), ...rest]);
  }

  #evict(bytes: number): void {
    const size = (): number =>
      this.#table.reduce((sum, { name, value }) => sum + name.length + value.length + 32, bytes);
    while (this.#table.length > 0 && size() > this.#tableBytes) this.#table.pop();
  }
}

function text(given: string): Buffer {
  return Buffer.concat([integer(0, 7, given.length), Buffer.from(given)]);
}

function integer(first: number, bits: number, value: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.of(first | value);
  const bytes = [first | most];
  let left = value - most;
  for (; left >= 128; left >>= 7) bytes.push((left & 127) | 128);
  return Buffer.from([...bytes, left]);
}
