import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { countersOf, type VersionCounters } from "../serving/version-counters.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import { names } from "./names.ts";

/** Counters of a version that nobody has touched for so long are of no interest any more. */
const keptMilliseconds = 30 * 24 * 3_600_000;

/**
 * Keeps in Redis what each process of a pool has counted of each version, so that the sum is there whoever is gone. Every
 * process writes all it knows, under its own name: writing twice changes nothing.
 */
export class StatisticsBoard {
  readonly #pool: string;
  readonly #process: string;
  readonly #commands: Redis;
  readonly #changed = new Map<string, ModelStatisticsRecorder>();

  /** @param process under whose name this process counts */
  constructor(pool: string, process: string, commands: Redis) {
    this.#pool = pool;
    this.#process = process;
    this.#commands = commands;
  }

  /** The version has counted something: {@link flush} will write it. */
  changed(version: string, recorder: ModelStatisticsRecorder): void {
    this.#changed.set(version, recorder);
  }

  /** Resolves when all that has changed is in Redis; what cannot be written stays for the next time. */
  async flush(): Promise<void> {
    if (this.#changed.size === 0) return;
    const changed = [...this.#changed];
    this.#changed.clear();
    const pipeline = this.#commands.pipeline();
    for (const [version, recorder] of changed) {
      const key = names.statistics(this.#pool, version);
      pipeline.hset(key, this.#process, JSON.stringify(countersOf(recorder)));
      pipeline.pexpire(key, keptMilliseconds);
    }
    try {
      await execute(pipeline);
    } catch {
      for (const [version, recorder] of changed) this.#changed.set(version, recorder);
    }
  }

  /** What all other processes have counted of the version, those that are gone included. */
  async others(version: string): Promise<readonly VersionCounters[]> {
    const counters = await this.#commands.hgetall(names.statistics(this.#pool, version));
    return Object.entries(counters)
      .filter(([process]) => process !== this.#process)
      .map(([, text]): VersionCounters => JSON.parse(text));
  }
}
