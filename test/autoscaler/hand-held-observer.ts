import type { Observer, PoolObservation } from "../../autoscaler/observe.ts";

export const quiet: PoolObservation = { demand: 0, oldestAgeMilliseconds: 0, poolWorkers: [] };

/** Sees what the test puts there. */
export class HandHeldObserver implements Observer {
  /** What is seen of every pool; an error is thrown. */
  seen: PoolObservation | Error = quiet;
  /** Looks until now. */
  looks = 0;
  readonly #listeners = new Set<(pool: string) => void>();

  async observe(): Promise<PoolObservation> {
    this.looks++;
    // A real observer answers no sooner than in the next turn.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.seen instanceof Error) throw this.seen;
    return this.seen;
  }

  onDemand(listener: (pool: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Demand appears, and all are told. */
  push(pool: string, demand: number): void {
    this.seen = { ...quiet, demand, demandSince: 5000 };
    for (const listener of this.#listeners) listener(pool);
  }
}
