import type { Sequence } from "./sequence.ts";

/** The places that an instance has for sequences; one that got a slot keeps it to its end. */
export class SequenceSlots {
  readonly capacity: number;
  readonly #sequences: (Sequence | undefined)[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** By slot, up to the last one that is taken. */
  get sequences(): readonly (Sequence | undefined)[] {
    return this.#sequences;
  }

  /** The lowest free slot; Infinity when all are taken. */
  get free(): number {
    const gap = this.#sequences.indexOf(undefined);
    if (gap >= 0) return gap;
    return this.#sequences.length < this.capacity ? this.#sequences.length : Infinity;
  }

  /** Gives the lowest free slot, which there has to be, to a sequence. */
  take(sequence: Sequence): void {
    this.#sequences[this.free] = sequence;
  }

  release(sequence: Sequence): void {
    const slot = this.#sequences.indexOf(sequence);
    if (slot < 0) return;
    this.#sequences[slot] = undefined;
    while (this.#sequences.length > 0 && !this.#sequences.at(-1)) this.#sequences.pop();
  }
}
