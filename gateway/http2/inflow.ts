/** How much the other side may send before it was consumed: of one stream, or of all. */
export class Inflow {
  readonly #windowBytes: number;
  readonly #widen: (bytes: number) => void;
  #leftBytes: number;
  #consumedBytes = 0;

  /** @param widen tells the other side that it may send so much more */
  constructor(windowBytes: number, widen: (bytes: number) => void) {
    this.#windowBytes = windowBytes;
    this.#leftBytes = windowBytes;
    this.#widen = widen;
  }

  /** False where it was more than the window. */
  take(bytes: number): boolean {
    this.#leftBytes -= bytes;
    return this.#leftBytes >= 0;
  }

  /** Gives room again: not for each piece, but when it is worth a frame. */
  consumed(bytes: number): void {
    this.#consumedBytes += bytes;
    if (this.#consumedBytes < this.#windowBytes / 2) return;
    this.#leftBytes += this.#consumedBytes;
    this.#widen(this.#consumedBytes);
    this.#consumedBytes = 0;
  }
}
