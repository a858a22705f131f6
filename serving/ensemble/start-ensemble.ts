import { normaliseConfig } from "../../repository/complete-config.ts";
import { systemClock } from "../clock.ts";
import { ModelStatisticsRecorder } from "../model-statistics.ts";
import type { RunningVersion, VersionSource } from "../running-version.ts";
import type { Scheduler } from "../scheduler.ts";
import { bindMembers, type FindReady } from "./bind-members.ts";
import { EnsembleScheduler } from "./ensemble-scheduler.ts";
import type { VersionHolds } from "./version-holds.ts";

/** Wraps the scheduler of a version, so that it answers with classes where requests ask for them. */
export type Classifier = (source: VersionSource) => Promise<(scheduler: Scheduler) => Scheduler>;

export interface EnsembleOptions {
  readonly find: FindReady;
  readonly holds: VersionHolds;
  readonly classifier: Classifier;
}

/** A version of an ensemble, bound to the versions that run its steps. */
export interface EnsembleVersion extends RunningVersion {
  /** One for each step. */
  readonly members: readonly RunningVersion[];
}

/**
 * Starts a version of an ensemble on those versions of its models that answer now; it keeps them from ending until it has
 * answered what it has taken. Rejects with the reference's text when they do not fit.
 */
export async function startEnsemble(
  source: VersionSource,
  { find, holds, classifier }: EnsembleOptions,
): Promise<EnsembleVersion> {
  const { name, version } = source;
  const config = normaliseConfig(source.config, { gpuCount: 0 });
  const classified = await classifier(source);
  const members = bindMembers(config, find);
  const model = { name, version, config };
  const statistics = new ModelStatisticsRecorder({ name, version, tags: config.metricTags });
  const scheduler = classified(
    new EnsembleScheduler(model, members, { statistics, clock: systemClock }),
  );
  holds.hold(members);
  return {
    model,
    members,
    scheduler,
    statistics,
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
    },
  };
}

/** True for a version that is bound to exactly these. */
export function isBoundTo(version: RunningVersion, members: readonly RunningVersion[]): boolean {
  if (!("members" in version) || !Array.isArray(version.members)) return false;
  const { members: bound } = version;
  return bound.length === members.length && members.every((member, i) => member === bound[i]);
}
