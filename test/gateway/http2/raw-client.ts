import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { frameHeadBytes, preface } from "../../../gateway/http2/wire.ts";

/** A frame with its payload. */
export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** The bytes of a frame, whether it makes sense or not; a text is hexadecimal. */
export function rawFrame(
  type: number,
  {
    flags = 0,
    stream = 0,
    payload = "",
  }: { flags?: number; stream?: number; payload?: string | Buffer } = {},
): Buffer {
  const bytes = typeof payload === "string" ? Buffer.from(payload, "hex") : payload;
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(bytes.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, bytes]);
}

/** A client that says what it is told to, byte by byte. */
export class RawClient {
  readonly socket: Socket;
  readonly frames: RawFrame[] = [];
  /** Told of each as it comes. */
  onFrame: (frame: RawFrame) => void = () => {};
  #rest = Buffer.alloc(0);

  static async connect(port: number): Promise<RawClient> {
    const client = new RawClient(port);
    await once(client.socket, "connect");
    client.socket.write(Buffer.concat([preface, rawFrame(4)]));
    return client;
  }

  private constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.socket.on("data", (chunk) => this.#read(chunk));
    this.socket.on("error", () => {});
  }

  /** Resolves with the first frame that fits; rejects when the connection ends without one. */
  async frame(fits: (frame: RawFrame) => boolean): Promise<RawFrame> {
    for (;;) {
      const found = this.frames.find(fits);
      if (found) return found;
      if (this.socket.closed) throw new Error("the connection ended without such a frame");
      // oxlint-disable-next-line no-await-in-loop -- there is nothing to look at before more comes.
      await Promise.race([once(this.socket, "data"), once(this.socket, "close")]);
    }
  }

  #read(chunk: Buffer): void {
    let bytes = Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= frameHeadBytes) {
      const end = frameHeadBytes + bytes.readUIntBE(0, 3);
      if (bytes.length < end) break;
      const frame = {
        type: bytes.readUInt8(3),
        flags: bytes.readUInt8(4),
        stream: bytes.readUInt32BE(5),
        payload: bytes.subarray(frameHeadBytes, end),
      };
      this.frames.push(frame);
      this.onFrame(frame);
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
  }
}
