import { preface } from "./wire.ts";

/** What a client says first. */
export class Greeting {
  #given: Buffer = Buffer.alloc(0);

  /** What follows it; undefined while it is not whole. Null for another greeting. */
  read(chunk: Buffer): Buffer | undefined | null {
    const given = Buffer.concat([this.#given, chunk]);
    const length = Math.min(given.length, preface.length);
    if (given.compare(preface, 0, length, 0, length) !== 0) return null;
    this.#given = given;
    return given.length < preface.length ? undefined : given.subarray(preface.length);
  }
}
