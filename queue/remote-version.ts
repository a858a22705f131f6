import { setTimeout as sleep } from "node:timers/promises";
import type { ServedModel } from "../protocol/served-model.ts";
import type { Clock } from "../serving/clock.ts";
import { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { RunningVersion } from "../serving/running-version.ts";
import type { PoolLink } from "./pool-link.ts";
import { startProgress } from "./start-progress.ts";
import { RemoteScheduler } from "./remote-scheduler.ts";
import { SummedStatistics } from "./summed-statistics.ts";

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
  const scheduler = new RemoteScheduler(key, model, { link, statistics, clock });
  const { board, channel, health } = link;
  return {
    model,
    scheduler,
    get healthy() {
      return health.isHealthy(key);
    },
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
