import { type Arrival, isLater } from "./arrivals.ts";

const maxKeys = 10_000;

/** Remembers the last event of each object, so that one that comes twice, or after a later one, is known for what it is. */
export class SeenArrivals {
  readonly #last = new Map<string, Arrival>();

  /** True for one that tells something new. */
  isNew(arrival: Arrival): boolean {
    const key = `${arrival.bucket}/${arrival.key}`;
    const last = this.#last.get(key);
    if (last && !isLater(arrival, last)) return false;
    this.#last.delete(key);
    this.#last.set(key, arrival);
    const [oldest] = this.#last.keys();
    if (this.#last.size > maxKeys && oldest !== undefined) this.#last.delete(oldest);
    return true;
  }

  /** Nothing came of it: the same event may come again. */
  forget(arrival: Arrival): void {
    this.#last.delete(`${arrival.bucket}/${arrival.key}`);
  }
}
