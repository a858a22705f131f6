/** Reads the fields of a frame's head in their order; throws a RangeError for one that is not of its type. */
export class HeadReader {
  readonly #fields: readonly unknown[];
  #at = 0;

  constructor(head: unknown) {
    if (!Array.isArray(head)) throw new RangeError("expected a list");
    this.#fields = head;
  }

  get done(): boolean {
    return this.#at >= this.#fields.length;
  }

  value(): unknown {
    return this.#fields[this.#at++];
  }

  text(): string {
    const value = this.value();
    if (typeof value === "string") return value;
    throw new RangeError("expected a text");
  }

  /** A whole number from 0 on. */
  count(): number {
    const value = this.value();
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
    throw new RangeError("expected a count");
  }

  number(): number {
    const value = this.value();
    if (typeof value === "number") return value;
    throw new RangeError("expected a number");
  }

  boolean(): boolean {
    const value = this.value();
    if (typeof value === "boolean") return value;
    throw new RangeError("expected true or false");
  }

  /** The next list's own fields. */
  list(): HeadReader {
    return new HeadReader(this.value());
  }

  /** Every one of the next list's fields, each read by the function. */
  each<Item>(read: (fields: HeadReader) => Item): Item[] {
    const fields = this.list();
    const items: Item[] = [];
    while (!fields.done) items.push(read(fields));
    return items;
  }

  /** What the function reads, or undefined where nothing stands. */
  optional<Item>(read: (fields: HeadReader) => Item): Item | undefined {
    if (this.#fields[this.#at] !== null) return read(this);
    this.#at++;
    return undefined;
  }
}
