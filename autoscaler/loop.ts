import type { WorkerExit } from "./crash-backoff.ts";
import { PoolLoop, type PoolLoopOptions, type ScaledPool } from "./pool-loop.ts";
import type { PoolScaling } from "./pool-loop.ts";

export interface ScalingLoopOptions extends PoolLoopOptions {
  readonly pools: readonly ScaledPool[];
  /**
   * How often each pool is looked at; every second by default: often enough for windows of seconds, and little work
   * for Redis.
   */
  readonly intervalMilliseconds?: number;
}

/**
 * Keeps every pool at the size that its demand needs: looks when demand appears, when a worker is gone, and every
 * interval. The scalers belong to those who made them.
 */
export class ScalingLoop {
  readonly #pools: ReadonlyMap<string, PoolLoop>;
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;

  constructor(options: ScalingLoopOptions) {
    this.#pools = new Map(options.pools.map((pool) => [pool.name, new PoolLoop(pool, options)]));
    this.#unsubscribe = options.observer.onDemand((name) => this.#pools.get(name)?.pushed());
    const lookAtAll = (): void => {
      for (const pool of this.#pools.values()) void pool.look();
    };
    this.#timer = setInterval(lookAtAll, options.intervalMilliseconds ?? 1000);
    lookAtAll();
  }

  /** To be told by a process scaler: replaces the worker if it is needed. */
  exited(pool: string, exit: WorkerExit): void {
    this.#pools.get(pool)?.exited(exit);
  }

  /** How each pool fares now. */
  status(): readonly PoolScaling[] {
    return [...this.#pools.values()].map((pool) => pool.status());
  }

  /** No pool is scaled any more from here on. */
  close(): void {
    clearInterval(this.#timer);
    this.#unsubscribe();
    for (const pool of this.#pools.values()) pool.close();
  }
}
