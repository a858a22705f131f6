/** Remembers a little for a short time, in one isolate: what every call would otherwise have to ask again. */
export class ShortMemory<Value> {
  readonly #most: number;
  /** The oldest first. */
  readonly #entries = new Map<string, { readonly value: Value; readonly until: number }>();

  constructor(most: number) {
    this.#most = most;
  }

  /** What is remembered; undefined where that is nothing, or was too long ago. */
  recall(name: string): Value | undefined {
    const entry = this.#entries.get(name);
    return entry && Date.now() < entry.until ? entry.value : undefined;
  }

  remember(name: string, value: Value, seconds: number): void {
    this.#entries.delete(name);
    this.#entries.set(name, { value, until: Date.now() + seconds * 1000 });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#most && oldest !== undefined) this.#entries.delete(oldest);
  }

  forget(name: string): void {
    this.#entries.delete(name);
  }
}
