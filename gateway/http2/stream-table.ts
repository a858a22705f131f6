/** The open streams of a connection by their ids: a hash table that leaves no garbage behind, however many come and go. */
export class StreamTable<S extends { readonly id: number }> {
  #slots: (S | undefined)[] = Array.from({ length: 16 });
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): S | undefined {
    return this.#slots[this.#find(id)];
  }

  /** Its id must not be there. */
  add(stream: S): void {
    if (2 * (this.#size + 1) > this.#slots.length) this.#grow();
    this.#slots[this.#find(stream.id)] = stream;
    this.#size++;
  }

  delete(id: number): void {
    const slots = this.#slots;
    let gap = this.#find(id);
    if (!slots[gap]) return;
    slots[gap] = undefined;
    this.#size--;
    // Those behind a gap move up, where they would not be found any more.
    for (let at = this.#after(gap); ; at = this.#after(at)) {
      const stream = slots[at];
      if (!stream) return;
      const home = this.#home(stream.id);
      const reached = gap <= at ? home > gap && home <= at : home > gap || home <= at;
      if (reached) continue;
      slots[gap] = stream;
      slots[at] = undefined;
      gap = at;
    }
  }

  all(): S[] {
    return this.#slots.filter((stream) => stream !== undefined);
  }

  /** Where it is, or where it would be. */
  #find(id: number): number {
    let at = this.#home(id);
    for (let stream = this.#slots[at]; stream && stream.id !== id; stream = this.#slots[at]) {
      at = this.#after(at);
    }
    return at;
  }

  /** A client's ids are odd, and rise. */
  #home(id: number): number {
    return (id >>> 1) & (this.#slots.length - 1);
  }

  #after(at: number): number {
    return (at + 1) & (this.#slots.length - 1);
  }

  #grow(): void {
    const streams = this.all();
    this.#slots = Array.from({ length: 2 * this.#slots.length });
    for (const stream of streams) this.#slots[this.#find(stream.id)] = stream;
  }
}
