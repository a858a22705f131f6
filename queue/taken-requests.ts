/** Requests of one tenant that a pool worker has taken with one job. */
export interface TakenJob {
  /** One of them is answered. */
  answered(): void;
  /** The job is over, and with it all that it brought. */
  over(): void;
}

/**
 * Bounds how much a pool worker takes ahead: what it has taken no other pool worker can run. A tenant that has less than an
 * equal part of what is taken need not wait until others' requests are answered.
 */
export class TakenRequests {
  readonly #bound: number;
  readonly #onRoom: () => void;
  readonly #byTenant = new Map<string, number>();
  #total = 0;

  /** @param onRoom called when there was none, and is now */
  constructor(bound: number, onRoom: () => void) {
    this.#bound = bound;
    this.#onRoom = onRoom;
  }

  get hasRoom(): boolean {
    return this.#total < this.#bound;
  }

  /** There may be no room for others, but for this tenant there is. */
  hasRoomFor(tenant: string): boolean {
    const own = this.#byTenant.get(tenant);
    const tenants = this.#byTenant.size + (own === undefined ? 1 : 0);
    return (own ?? 0) < this.#bound / tenants;
  }

  take(tenant: string, requests: number): TakenJob {
    let left = requests;
    this.#add(tenant, requests);
    const leave = (count: number): void => {
      left -= count;
      this.#add(tenant, -count);
    };
    return { answered: () => leave(Math.min(1, left)), over: () => leave(left) };
  }

  #add(tenant: string, count: number): void {
    if (count === 0) return;
    const { hasRoom } = this;
    const own = (this.#byTenant.get(tenant) ?? 0) + count;
    if (own === 0) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, own);
    this.#total += count;
    if (!hasRoom && this.hasRoom) this.#onRoom();
  }
}
