import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { inOneWrite } from "../redis/one-write.ts";
import { countersOf, sumCounters, type VersionCounters } from "../serving/version-counters.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import { names } from "./names.ts";

interface DatedCounters extends VersionCounters {
  /** Absent in the sum of those that are gone. */
  readonly at?: number;
}

/** What a process says of a version that it has, it says again before so much time is over. */
const silentMilliseconds = 5000;
/** Counters of a version that nobody has touched for so long are of no interest any more. */
const keptMilliseconds = 30 * 24 * 3_600_000;

/** Under this name stand all processes that are gone. */
const goneField = "gone";
/** Adding up costs more than it saves for a few. */
const foldedAtOnce = 8;

/**
 * Keeps in Redis what each process of a pool has counted of each version, so that the sum is there whoever is gone. Every
 * process writes all it knows, under its own name: writing twice changes nothing.
 */
export class StatisticsBoard {
  readonly #pool: string;
  readonly #process: string;
  readonly #commands: Redis;
  readonly #counted = new Map<string, Counted>();
  readonly #changed = new Set<string>();
  #written = Promise.resolve();

  /** @param process under whose name this process counts */
  constructor(pool: string, process: string, commands: Redis) {
    this.#pool = pool;
    this.#process = process;
    this.#commands = commands;
  }

  /** The version has counted something: {@link flush} will write it. */
  changed(version: string, recorder: ModelStatisticsRecorder): void {
    this.#changed.add(version);
    const counted = this.#counted.get(version);
    if (!counted) this.#counted.set(version, { recorders: [recorder], before: [] });
    else if (!counted.recorders.includes(recorder)) begin(counted, recorder);
  }

  /** Resolves when all that has changed is in Redis; what cannot be written stays for the next time. */
  flush(): Promise<void> {
    if (this.#changed.size > 0) this.#written = this.#write();
    return this.#written;
  }

  async #write(): Promise<void> {
    const changed = [...this.#changed];
    this.#changed.clear();
    inOneWrite(this.#commands);
    const writes = changed.flatMap((version) => {
      const key = names.statistics(this.#pool, version);
      const counted = this.#counted.get(version);
      const counters = { ...(counted && sumOf(counted)), at: Date.now() };
      return [
        this.#commands.hset(key, this.#process, JSON.stringify(counters)),
        this.#commands.pexpire(key, keptMilliseconds),
      ];
    });
    try {
      await Promise.all(writes);
    } catch {
      for (const version of changed) this.#changed.add(version);
    }
  }

  /**
   * Adds up those that are gone, so that their number does not grow with every process that comes and goes. To be called
   * by one process at a time.
   *
   * @param before those that have said something since then stay, whoever they are; milliseconds since the epoch
   * @param lives whether a process may count on
   */
  async foldGone(
    version: string,
    before: number,
    lives: (process: string) => Promise<boolean>,
  ): Promise<void> {
    const key = names.statistics(this.#pool, version);
    const counters = Object.entries(await this.#commands.hgetall(key)).map(
      ([process, text]): readonly [string, DatedCounters] => [process, JSON.parse(text)],
    );
    const silent = counters.filter(([, { at = 0 }]) => at <= before);
    if (silent.length < foldedAtOnce) return;
    const living = await Promise.all(silent.map(([process]) => lives(process)));
    const gone = silent.filter((_, i) => !living[i]);
    const [first, ...rest] = gone.map(([, one]) => one);
    if (!first || gone.length < foldedAtOnce) return;
    const sum = JSON.stringify(sumCounters(first, rest));
    await execute(
      this.#commands
        .multi()
        .hdel(key, ...gone.map(([process]) => process))
        .hset(key, goneField, sum),
    );
  }

  /**
   * What all other processes have counted of the version, those that are gone included; nothing waits in those.
   * @param now milliseconds since the epoch
   */
  async others(version: string, now: number): Promise<readonly VersionCounters[]> {
    const counters = await this.#commands.hgetall(names.statistics(this.#pool, version));
    return Object.entries(counters)
      .filter(([process]) => process !== this.#process)
      .map(([, text]): DatedCounters => JSON.parse(text))
      .map((one) => (now - (one.at ?? 0) > silentMilliseconds ? atRest(one) : one));
  }
}

/** A version may come and go in one process. */
interface Counted {
  /** The present one, and the one before, whose last requests may still be running. */
  readonly recorders: ModelStatisticsRecorder[];
  /** The sum of all that were there earlier, if there were any. */
  before: readonly VersionCounters[];
}

function begin(counted: Counted, recorder: ModelStatisticsRecorder): void {
  const [, last] = counted.recorders;
  counted.recorders.unshift(recorder);
  if (!last) return;
  counted.recorders.pop();
  counted.before = [sumCounters(atRest(countersOf(last)), counted.before)];
}

function sumOf({ recorders, before }: Counted): VersionCounters | undefined {
  const [first, ...rest] = [...recorders.map(countersOf), ...before];
  return first && (rest.length > 0 ? sumCounters(first, rest) : first);
}

function atRest({ statistics, observation }: VersionCounters): VersionCounters {
  return { statistics, observation: { ...observation, pending: 0 } };
}
