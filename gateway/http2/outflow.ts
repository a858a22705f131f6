import type { FrameWriter } from "./frame-writer.ts";
import { initialSettings, type PeerSettings } from "./peer-settings.ts";
import { ConnectionError, ErrorCode, initial, largestWindowBytes } from "./wire.ts";

/** So much may wait for a client that does not read; bodies wait in their streams with what is beyond it. */
const maxUnsentBytes = 2 * 1024 * 1024;

/** Heads and the like wait for nobody: where they come to so much, the client is not heard any more. */
const maxUnheardBytes = 4 * 1024 * 1024;

/** A stream that has something to send. */
export interface Sending {
  /** Sends as much as it may. */
  flush(): void;
}

/** How much may be sent on a connection, by the other side's window and by what the system takes. */
export class Outflow {
  readonly #writer: FrameWriter;
  #windowBytes: number = initial.windowBytes;
  /** The next one in turn is the first. */
  readonly #waiting = new Set<Sending>();
  settings: PeerSettings = initialSettings;
  /** Something went since this was set to false. */
  moved = false;

  constructor(writer: FrameWriter) {
    this.#writer = writer;
  }

  /** True while more waits than a client should be answered that does not read. */
  get isFlooded(): boolean {
    return this.#writer.unsentBytes >= maxUnheardBytes;
  }

  /** How many of these bytes may go out in a frame now. One who gets none is told when to try again. */
  take(bytes: number, sending: Sending): number {
    if (this.#isBlocked) {
      this.#waiting.add(sending);
      return 0;
    }
    const taken = Math.min(bytes, this.#windowBytes, this.settings.frameBytes);
    this.#windowBytes -= taken;
    this.moved = true;
    return taken;
  }

  /** The other side takes so much more. */
  widen(bytes: number): void {
    this.#windowBytes += bytes;
    if (this.#windowBytes > largestWindowBytes) {
      throw new ConnectionError(ErrorCode.FlowControlError, "connection: given too large a window");
    }
    this.flush();
  }

  /** Lets those try again who got nothing, in turn and while there is something to get. */
  flush(): void {
    for (const sending of this.#waiting) {
      if (this.#isBlocked) return;
      this.#waiting.delete(sending);
      sending.flush();
    }
  }

  /** It has nothing to send any more. */
  forget(sending: Sending): void {
    this.#waiting.delete(sending);
  }

  get #isBlocked(): boolean {
    return this.#windowBytes === 0 || this.#writer.unsentBytes >= maxUnsentBytes;
  }
}
