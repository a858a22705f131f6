import { createHash } from "node:crypto";
import type { Redis } from "../redis/connection.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { VersionStatistics } from "../serving/running-version.ts";
import { names } from "./names.ts";
import { StatisticsBoard } from "./statistics-board.ts";
import { SummedStatistics } from "./summed-statistics.ts";

/**
 * Adds up what the gateways count of ensembles: each runs the requests that it gets, so that no pool worker counts them.
 */
export class EnsembleStatistics {
  readonly #board: StatisticsBoard;
  readonly #counted = new Map<string, ModelStatisticsRecorder>();

  /** @param gateway under whose name this process counts */
  constructor(gateway: string, commands: Redis) {
    this.#board = new StatisticsBoard(names.poolOfEnsembles, gateway, commands);
  }

  /** @param key of the version */
  summed(key: string, own: ModelStatisticsRecorder): VersionStatistics {
    this.#counted.set(key, own);
    return new SummedStatistics(key, own, this.#board);
  }

  /** To be called every so often: resolves when what was counted here is in Redis. */
  async say(): Promise<void> {
    for (const [key, own] of this.#counted) this.#board.changed(key, own);
    await this.#board.flush();
  }

  /** See {@link StatisticsBoard.foldGone}. */
  async fold(before: number, lives: (gateway: string) => Promise<boolean>): Promise<void> {
    for (const key of this.#counted.keys()) await this.#board.foldGone(key, before, lives);
  }

  /** The ensemble has ended; resolves when all that it has counted is in Redis. */
  async ended(key: string, own: ModelStatisticsRecorder): Promise<void> {
    this.#board.changed(key, own);
    if (this.#counted.get(key) === own) this.#counted.delete(key);
    await this.#board.flush();
  }
}

/** The key of an ensemble: another one when it is bound to other versions. @param ticket its own @param members their keys */
export function ensembleKey(ticket: string, members: readonly string[]): string {
  return createHash("sha256")
    .update(JSON.stringify([ticket, ...members]))
    .digest("base64url")
    .slice(0, 32);
}
