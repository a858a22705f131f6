import type { ModelStatistics } from "../protocol/statistics.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { VersionStatistics } from "../serving/running-version.ts";
import { countersOf, sumObservations, sumStatistics } from "../serving/version-counters.ts";
import type { FailureReason, ModelObservation } from "../telemetry/model-observation.ts";
import { queueAway } from "./queue-away.ts";
import type { StatisticsBoard } from "./statistics-board.ts";

/** What all processes have counted of a version: this one from memory, the others from the board. */
export class SummedStatistics implements VersionStatistics {
  readonly #key: string;
  readonly #own: ModelStatisticsRecorder;
  readonly #board: StatisticsBoard;

  constructor(key: string, own: ModelStatisticsRecorder, board: StatisticsBoard) {
    this.#key = key;
    this.#own = own;
    this.#board = board;
  }

  async snapshot(): Promise<ModelStatistics> {
    const others = await this.#others();
    const statistics = others.map((counters) => counters.statistics);
    return sumStatistics(this.#own.snapshot(), statistics);
  }

  async observe(): Promise<ModelObservation> {
    const others = await this.#others();
    const observations = others.map(({ observation }) => observation);
    return sumObservations(countersOf(this.#own).observation, observations);
  }

  cacheEnabled(): void {
    this.#own.cacheEnabled();
  }

  cacheHit(lookupNanoseconds: number, requestMilliseconds: number): void {
    this.#own.cacheHit(lookupNanoseconds, requestMilliseconds);
    this.#board.changed(this.#key, this.#own);
  }

  cacheMiss(nanoseconds: number): void {
    this.#own.cacheMiss(nanoseconds);
    this.#board.changed(this.#key, this.#own);
  }

  failed(reason: FailureReason, milliseconds: number): void {
    this.#own.failed(reason, milliseconds);
    this.#board.changed(this.#key, this.#own);
  }

  /** The pool worker that started the version has counted that. */
  loaded(): void {}

  #others(): ReturnType<StatisticsBoard["others"]> {
    return this.#board.others(this.#key, Date.now()).catch((cause: unknown) => {
      throw queueAway(cause);
    });
  }
}
