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
  /** By the field of their sum. */
  readonly #histograms = new Map<string, (value: number) => void>();
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
    this.histogram(name, labels)(value);
  }

  /** What counts the values of a histogram: for those of which many come. */
  histogram(name: CountedName, labels: readonly string[]): (value: number) => void {
    const sum = countField(name, labels, "sum");
    const known = this.#histograms.get(sum);
    if (known) return known;
    const { bounds = [] }: CountedMetric = countedMetrics[name];
    const fields = [...bounds, Infinity].map((_, bucket) => countField(name, labels, bucket));
    const observe = (value: number): void => {
      // Beyond all bounds it is -1, which stands for the last field.
      const bucket = bounds.findIndex((bound) => value <= bound);
      this.#add(fields.at(bucket) ?? "", 1);
      this.#add(sum, value);
    };
    this.#histograms.set(sum, observe);
    return observe;
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
