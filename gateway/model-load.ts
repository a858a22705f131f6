import type { Call } from "../protocol/call.ts";
import { DrainRate } from "../protocol/drain-rate.ts";
import type { Backlog } from "../protocol/retry-after.ts";

/** What one model has under way here, how fast it goes, and how long its start took when it was last seen. */
export class ModelLoad {
  readonly #drain = new DrainRate();
  #inFlight = 0;
  #busySince = 0;
  #coldStartMilliseconds: number | undefined;

  get inFlight(): number {
    return this.#inFlight;
  }

  begin(now: number): void {
    if (this.#inFlight === 0) this.#busySince = now;
    this.#inFlight++;
  }

  leave(): void {
    this.#inFlight--;
  }

  /** One has come to its end; to be told before it leaves. */
  ended(now: number, { coldStart, receivedAt }: Pick<Call, "coldStart" | "receivedAt">): void {
    this.#drain.count(now);
    // Those who came later waited for a part of it only.
    if (coldStart && receivedAt <= this.#busySince) this.#coldStartMilliseconds = now - receivedAt;
  }

  backlog(now: number): Backlog {
    const usualMilliseconds = this.#coldStartMilliseconds;
    return {
      waiting: this.#inFlight,
      drainedPerSecond: this.#drain.perSecond(now),
      ...(usualMilliseconds !== undefined && {
        coldStart: { usualMilliseconds, elapsedMilliseconds: now - this.#busySince },
      }),
    };
  }
}

/** Models are named by callers, who may name any. */
const mostModels = 1000;

/** The loads of all models that were asked for lately. */
export class ModelLoads {
  readonly #loads = new Map<string, ModelLoad>();

  /** How many are remembered. */
  get size(): number {
    return this.#loads.size;
  }

  of(modelName: string): ModelLoad {
    const known = this.#loads.get(modelName);
    if (known) return known;
    if (this.#loads.size >= mostModels) this.#forgetIdle();
    const made = new ModelLoad();
    this.#loads.set(modelName, made);
    return made;
  }

  #forgetIdle(): void {
    for (const [name, load] of this.#loads) if (load.inFlight === 0) this.#loads.delete(name);
  }
}
