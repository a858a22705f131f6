import type { ResponseSink } from "../../../serving/scheduler.ts";

/** So much is worth a message to the process. */
const worthTellingBytes = 65_536;

/** Tells a process what its client has read of the responses to one request, so that it can wait with the others. */
export class Receipt {
  readonly #sink: ResponseSink;
  readonly #tell: (bytes: number) => void;
  #untoldBytes = 0;

  constructor(sink: ResponseSink, tell: (bytes: number) => void) {
    this.#sink = sink;
    this.#tell = tell;
  }

  /** The sink has got a response. */
  async sent(bytes: number): Promise<void> {
    this.#untoldBytes += bytes;
    const { room } = this.#sink;
    if (room) await room;
    else if (this.#untoldBytes < worthTellingBytes) return;
    this.close();
  }

  /** No more comes: nobody need count what is left. */
  close(): void {
    if (this.#untoldBytes > 0) this.#tell(this.#untoldBytes);
    this.#untoldBytes = 0;
  }
}
