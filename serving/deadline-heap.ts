/** Something that is over at a certain time, and remembers where a heap keeps it. */
export interface Expiring {
  /** Milliseconds on the owner's clock. */
  readonly deadline: number;
  /** Kept by the heap; -1 outside of one. */
  slot: number;
}

/**
 * Tells which of many deadlines comes first, and forgets any of them in O(log n).
 * Equal timeouts arrive in order, which makes adding one O(1).
 */
export class DeadlineHeap<T extends Expiring> {
  readonly #items: T[] = [];

  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  /** Does nothing for an item that is not in here. */
  remove(item: T): void {
    if (item.slot < 0) return;
    const hole = item.slot;
    item.slot = -1;
    const last = this.#items.pop();
    if (!last || last === item) return;
    this.#rise(last, hole);
    this.#sink(last, last.slot);
  }

  #rise(item: T, from: number): void {
    let slot = from;
    while (slot > 0) {
      const parent = this.#items[(slot - 1) >> 1];
      if (!parent || parent.deadline <= item.deadline) break;
      const above = parent.slot;
      this.#place(parent, slot);
      slot = above;
    }
    this.#place(item, slot);
  }

  #sink(item: T, from: number): void {
    let slot = from;
    for (let child = this.#earlierChild(slot); child && child.deadline < item.deadline;) {
      const below = child.slot;
      this.#place(child, slot);
      slot = below;
      child = this.#earlierChild(slot);
    }
    this.#place(item, slot);
  }

  #earlierChild(slot: number): T | undefined {
    const left = this.#items[2 * slot + 1];
    const right = this.#items[2 * slot + 2];
    return left && right && right.deadline < left.deadline ? right : left;
  }

  #place(item: T, slot: number): void {
    this.#items[slot] = item;
    item.slot = slot;
  }
}
