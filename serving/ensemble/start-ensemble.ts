import type { ModelConfig } from "../../protocol/model-config.ts";
import { checkConfig } from "../../repository/config-check/check-config.ts";
import { normaliseConfig } from "../../repository/complete-config.ts";
import { systemClock } from "../clock.ts";
import { ModelStatisticsRecorder } from "../model-statistics.ts";
import type { RunningVersion, VersionSource, VersionStatistics } from "../running-version.ts";
import type { Scheduler } from "../scheduler.ts";
import { bindMembers, type FindReady } from "./bind-members.ts";
import { EnsembleScheduler } from "./ensemble-scheduler.ts";
import { isDecoupled } from "./is-decoupled.ts";
import type { VersionHolds } from "./version-holds.ts";

/** Wraps the scheduler of a version, so that it answers with classes where requests ask for them. */
export type Classifier = (source: VersionSource) => Promise<(scheduler: Scheduler) => Scheduler>;

/** What is told of an ensemble, where other processes count requests for it, too. */
export interface SharedStatistics {
  readonly statistics: VersionStatistics;
  /** To be called when the last request was counted. */
  end(): Promise<void>;
}

/** Adds what others count to what is counted here. */
export type StatisticsSharing = (
  source: VersionSource,
  version: Required<Pick<RunningVersion, "model" | "members">>,
  own: ModelStatisticsRecorder,
) => SharedStatistics;

export interface EnsembleOptions {
  readonly find: FindReady;
  readonly holds: VersionHolds;
  readonly classifier: Classifier;
  /** @defaultValue nobody else counts */
  readonly shareStatistics?: StatisticsSharing | undefined;
}

/**
 * Starts a version of an ensemble on those versions of its models that answer now; it keeps them from ending until it has
 * answered what it has taken. Rejects with the reference's text when they do not fit.
 */
export async function startEnsemble(
  source: VersionSource,
  { find, holds, classifier, shareStatistics }: EnsembleOptions,
): Promise<RunningVersion> {
  const { name, version } = source;
  const normalised = normaliseConfig(source.config, { gpuCount: 0 });
  const classified = await classifier(source);
  const members = bindMembers(normalised, find);
  const config = withPolicy(normalised, members);
  // Some settings are not for those that answer many times.
  checkConfig(config, name);
  const model = { name, version, config };
  const own = new ModelStatisticsRecorder({ name, version, tags: config.metricTags });
  const shared = shareStatistics?.(source, { model, members }, own);
  const scheduler = classified(
    new EnsembleScheduler(model, members, { statistics: own, clock: systemClock }),
  );
  holds.hold(members);
  return {
    model,
    members,
    scheduler,
    statistics: shared?.statistics ?? own,
    get healthy() {
      return members.every(({ healthy }) => healthy);
    },
    progress(listener) {
      const ends = members.map((member) => member.progress?.(listener));
      return () => {
        for (const end of ends) end?.();
      };
    },
    async close() {
      await scheduler.stop();
      holds.release(members);
      await shared?.end();
    },
  };
}

/** It answers as often as one of its models does. */
function withPolicy(config: ModelConfig, members: readonly RunningVersion[]): ModelConfig {
  const decoupled = isDecoupled(config) || members.some(({ model }) => isDecoupled(model.config));
  return { ...config, modelTransactionPolicy: { decoupled } };
}

/** True for a version that is bound to exactly these. */
export function isBoundTo(version: RunningVersion, members: readonly RunningVersion[]): boolean {
  const { members: bound = [] } = version;
  return bound.length === members.length && members.every((member, i) => member === bound[i]);
}
