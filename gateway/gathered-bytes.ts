/**
 * Puts the pieces of a body together as they come. One that comes in one piece is not copied, and however small the pieces
 * are, they cost no more than their bytes.
 */
export class GatheredBytes {
  #bytes: Buffer = Buffer.alloc(0);
  #size = 0;

  /** How much has come. */
  get size(): number {
    return this.#size;
  }

  /** What has come, until the next piece is added. */
  get bytes(): Buffer {
    return this.#bytes.length === this.#size ? this.#bytes : this.#bytes.subarray(0, this.#size);
  }

  /** @param announced how much comes in all, as far as is known: NaN for not at all */
  add(piece: Buffer, announced: number): void {
    const size = this.#size + piece.length;
    if (this.#size === 0) this.#bytes = piece;
    else {
      if (size > this.#bytes.length) this.#grow(capacity(size, announced));
      piece.copy(this.#bytes, this.#size);
    }
    this.#size = size;
  }

  #grow(length: number): void {
    const grown = Buffer.allocUnsafeSlow(length);
    this.#bytes.copy(grown, 0, 0, this.#size);
    this.#bytes = grown;
  }
}

/** The announced size as soon as a good part of it has come: who announces much and sends little gets little memory. */
function capacity(needed: number, announced: number): number {
  return 16 * needed >= announced ? Math.max(needed, announced) : 2 * needed;
}
