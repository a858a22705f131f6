import type { FairLedger, LedgerPage } from "../../queue/fair-ledger.ts";

/** What the ledger in Redis does, in plain words. */
export class MemoryLedger implements FairLedger {
  readonly #finishes = new Map<string, number>();
  #now = 0;
  #base: number | undefined;

  exchange(seen: number, reach: number, spent: ReadonlyMap<string, number>): Promise<LedgerPage> {
    const now = (this.#now = Math.max(this.#now, seen));
    this.#base ??= now;
    if (now - this.#base > reach) this.#base = now;
    for (const [tenant, items] of spent) {
      this.#finishes.set(tenant, Math.max(now, this.#finishes.get(tenant) ?? 0) + items);
    }
    for (const [tenant, finish] of this.#finishes) if (finish <= now) this.#finishes.delete(tenant);
    return Promise.resolve({ now, base: this.#base, finishes: new Map(this.#finishes) });
  }
}
