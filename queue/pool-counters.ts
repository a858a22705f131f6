import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import {
  countedMetrics,
  type CountedMetric,
  type CountedName,
  countField,
  type PoolCounts,
} from "../telemetry/pool-counts.ts";
import { names } from "./names.ts";

/**
 * Counts what the workers of a pool do. Each adds what is new to one sum in Redis, so that nothing is lost with those that
 * are gone and nothing has to be kept for each of them. When Redis goes away amid an addition, it may be added twice.
 */
export class PoolCounters {
  readonly #key: string;
  readonly #commands: Redis;
  readonly #followed: (() => void)[] = [];
  #added = new Map<string, number>();

  constructor(pool: string, commands: Redis) {
    this.#key = names.counters(pool);
    this.#commands = commands;
  }

  /** @param labels values of the metric's labels, in their order */
  add(name: CountedName, labels: readonly string[] = [], by = 1): void {
    this.#add(countField(name, labels), by);
  }

  /** Counts a value of a histogram. */
  observe(name: CountedName, labels: readonly string[], value: number): void {
    const { bounds = [] }: CountedMetric = countedMetrics[name];
    const bucket = bounds.findIndex((bound) => value <= bound);
    this.#add(countField(name, labels, bucket === -1 ? bounds.length : bucket), 1);
    this.#add(countField(name, labels, "sum"), value);
  }

  /** Counts what somebody else counts from the start of this process on. */
  follow(name: CountedName, total: () => number): void {
    let before = 0;
    this.#followed.push(() => {
      const now = total();
      if (now > before) this.add(name, [], now - before);
      before = now;
    });
  }

  /** Resolves when all is in Redis; what cannot be written stays for the next time. */
  async flush(): Promise<void> {
    for (const follow of this.#followed) follow();
    if (this.#added.size === 0) return;
    const added = this.#added;
    this.#added = new Map();
    const pipeline = this.#commands.pipeline();
    for (const [field, value] of added) pipeline.hincrbyfloat(this.#key, field, value);
    try {
      await execute(pipeline);
    } catch {
      for (const [field, value] of added) this.#add(field, value);
    }
  }

  /** What all workers of the pool have counted. */
  async read(): Promise<PoolCounts> {
    const values = Object.entries(await this.#commands.hgetall(this.#key));
    return new Map(values.map(([field, value]) => [field, Number(value)]));
  }

  #add(field: string, by: number): void {
    this.#added.set(field, (this.#added.get(field) ?? 0) + by);
  }
}
