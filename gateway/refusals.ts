/** Tenants are named by keys and tokens: more than these are counted together. */
const mostTenants = 100;
/** How those are told. */
const otherTenants = "other";

/** Counts requests that were refused for want of room, by why and whose they were. */
export class Refusals {
  readonly #tenants = new Set<string>();
  readonly #counts = new Map<string, Map<string, number>>();

  count(reason: string, tenant: string): void {
    const known = this.#tenants.has(tenant) || this.#tenants.size < mostTenants;
    const label = known ? tenant : otherTenants;
    if (known) this.#tenants.add(tenant);
    const ofReason = this.#counts.get(reason) ?? new Map<string, number>();
    this.#counts.set(reason, ofReason.set(label, (ofReason.get(label) ?? 0) + 1));
  }

  /** Each reason and tenant with how many there were. */
  *[Symbol.iterator](): Iterator<{
    readonly reason: string;
    readonly tenant: string;
    readonly count: number;
  }> {
    for (const [reason, ofReason] of this.#counts)
      for (const [tenant, count] of ofReason) yield { reason, tenant, count };
  }
}
