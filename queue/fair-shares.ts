import type { FairLedger, LedgerPage } from "./fair-ledger.ts";

export interface FairSharesOptions {
  readonly ledger: FairLedger;
  /** The priority of what is to run first, and of what is to run last. */
  readonly first: number;
  readonly last: number;
}

/** Between two looks at what others know. */
const tellMilliseconds = 50;
/** So that a long backlog of one tenant has room: jobs of about the same time run as they came. */
const itemsPerPriority = 4;

/**
 * Gives the tenants of a pool equal shares of it. The pool's virtual time is how many items a tenant has been given that
 * always had some waiting. A job has a virtual finish time: as many items as it has after the time when it is sent, or
 * after the finish of its tenant's last job if that is later. Jobs run in this order, because their priorities are in this
 * order, and the finish of the job that was taken last is the time. The processes of a pool tell each other through a
 * ledger what they know, a few times a second: nobody waits for it.
 */
export class FairShares {
  readonly #options: FairSharesOptions;
  /** The virtual finish of what each tenant has sent last. */
  readonly #finishes = new Map<string, number>();
  readonly #listeners: (() => void)[] = [];
  #now = 0;
  #base = 0;
  /** Items that the ledger does not know of yet, by tenant. */
  #spent = new Map<string, number>();
  #isNews = false;
  #telling: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FairSharesOptions) {
    this.#options = options;
  }

  /** The virtual finish time of so many items, which the tenant sends now. */
  send(tenant: string, items: number): number {
    const finish = Math.max(this.#now, this.#finishes.get(tenant) ?? 0) + items;
    this.#finishes.set(tenant, finish);
    this.#spent.set(tenant, (this.#spent.get(tenant) ?? 0) + items);
    this.#tellSoon();
    return finish;
  }

  /** So many of the items that it has sent the tenant has withdrawn. */
  giveBack(tenant: string, items: number): void {
    this.send(tenant, -items);
  }

  /** A job with this virtual finish time was taken. */
  take(finish: number): void {
    // Others of the same priority may still wait, and must not have to begin again at a later time.
    const now = Math.floor(finish / itemsPerPriority) * itemsPerPriority;
    if (now <= this.#now) return;
    this.#now = now;
    this.#tellSoon();
  }

  /** What makes BullMQ run a job with this virtual finish time in its turn. */
  priority(finish: number): number {
    const { first, last } = this.#options;
    const distance = Math.floor((finish - this.#base) / itemsPerPriority);
    return Math.min(last, first + Math.max(0, distance));
  }

  /** @param listener called when the priorities of all jobs have changed, because the time was about to outrun them */
  onRebase(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Resolves when this process knows what the others have told, and they can know what it does; never rejects. */
  tell(): Promise<void> {
    this.#telling ??= this.#tell()
      // What could not be told is told the next time.
      .catch(() => {})
      .finally(() => (this.#telling = undefined));
    return this.#telling;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #tellSoon(): void {
    this.#isNews = true;
    if (this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#isNews) this.#tellSoon();
    }, tellMilliseconds);
    this.#timer.unref();
    void this.tell();
  }

  async #tell(): Promise<void> {
    const { ledger, first, last } = this.#options;
    const spent = this.#spent;
    this.#spent = new Map();
    this.#isNews = false;
    try {
      // So that the time is far from the last priority when the base follows, whatever waits by then.
      const reach = ((last - first) / 4) * itemsPerPriority;
      this.#learn(await ledger.exchange(this.#now, reach, spent));
    } catch (error) {
      for (const [flow, items] of spent)
        this.#spent.set(flow, (this.#spent.get(flow) ?? 0) + items);
      throw error;
    }
  }

  #learn({ now, base, finishes }: LedgerPage): void {
    this.#now = Math.max(this.#now, now);
    for (const [tenant, finish] of finishes)
      this.#finishes.set(tenant, finish + (this.#spent.get(tenant) ?? 0));
    for (const [tenant, finish] of this.#finishes)
      if (finish <= this.#now) this.#finishes.delete(tenant);
    if (base === this.#base) return;
    this.#base = base;
    for (const listener of this.#listeners) listener();
  }
}
