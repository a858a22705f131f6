import { setTimeout as sleep } from "node:timers/promises";
import type { ServedModel } from "../protocol/served-model.ts";
import type { ModelStatistics } from "../protocol/statistics.ts";
import type { Clock } from "../serving/clock.ts";
import { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { RunningVersion, VersionStatistics } from "../serving/running-version.ts";
import { countersOf, sumObservations, sumStatistics } from "../serving/version-counters.ts";
import type { ModelObservation } from "../telemetry/model-observation.ts";
import type { PoolLink } from "./pool-link.ts";
import { startProgress } from "./start-progress.ts";
import { RemoteScheduler } from "./remote-scheduler.ts";
import { queueAway } from "./queue-away.ts";
import type { StatisticsBoard } from "./statistics-board.ts";

export interface RemoteVersionOptions {
  readonly link: PoolLink;
  readonly clock: Clock;
  /** True when the gateway itself ends: the version is still wanted then. */
  readonly leaving: () => boolean;
}

const retireMilliseconds = 1000;

/**
 * A version that pool workers run: it answers through the queue, whether one of them exists at the moment or not.
 *
 * @param key of the version
 */
export function remoteVersion(
  key: string,
  model: ServedModel,
  { link, clock, leaving }: RemoteVersionOptions,
): RunningVersion {
  const { name, version } = model;
  const statistics = new ModelStatisticsRecorder({ name, version, tags: model.config.metricTags });
  const { board, sender, channel } = link;
  const scheduler = new RemoteScheduler(key, { sender, channel, board, statistics, clock });
  return {
    model,
    scheduler,
    healthy: true,
    statistics: new SummedStatistics(key, statistics, board),
    progress: (listener) => startProgress(key, link, listener),
    async close() {
      await scheduler.stop();
      if (leaving()) return;
      // Other gateways, which follow within moments, may still send to it.
      await sleep(retireMilliseconds);
      if (!leaving()) channel.publish({ type: "retired", version: key });
    },
  };
}

/** What all processes have counted of a version: this one from memory, the others from the board. */
class SummedStatistics implements VersionStatistics {
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

  /** The pool worker that started the version has counted that. */
  loaded(): void {}

  #others(): ReturnType<StatisticsBoard["others"]> {
    return this.#board.others(this.#key, Date.now()).catch((cause: unknown) => {
      throw queueAway(cause);
    });
  }
}
