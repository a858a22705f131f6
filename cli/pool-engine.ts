import { InferenceError, StatusCode } from "../protocol/error.ts";
import { keepsSequences } from "../protocol/keeps-sequences.ts";
import { ResidentScheduler, type ResidentVersion } from "../queue/resident-scheduler.ts";
import type { ModelRepository } from "../repository/model-repository.ts";
import type { RunningVersion } from "../serving/running-version.ts";
import type { Scheduler } from "../serving/scheduler.ts";
import type { ServingEngine } from "../serving/serving-engine.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { MetricSource } from "../telemetry/registry.ts";
import { connectRedis, disconnectRedis } from "./connect-redis.ts";
import { openQueueEngine } from "./open-queue-engine.ts";
import { readPools } from "./pools.ts";
import type { Settings } from "./settings.ts";

export interface PoolEngineOptions {
  readonly settings: Settings;
  /** The pool of this pool worker. */
  readonly pool: string;
  readonly repository: ModelRepository;
  /** The versions of this process, by key. */
  readonly resident: ResidentVersion;
  readonly log: Logger;
}

/** The engine that the models of a pool worker ask. */
export interface PoolEngine {
  readonly engine: ServingEngine;
  /** Of its response cache. */
  readonly metrics: readonly MetricSource[];
  close(): Promise<void>;
}

/**
 * Opens the engine for what models of this pool worker ask of others: like a gateway's, but requests to models of the
 * same pool stay in this process. Through the queue they could wait for ever for the places that those who ask hold.
 */
export async function openPoolEngine(options: PoolEngineOptions): Promise<PoolEngine> {
  const { settings, pool: own, repository, resident, log } = options;
  const redis = await connectRedis(settings, log);
  const { engine, versions, cache } = await openQueueEngine({
    settings,
    repository,
    pools: await readPools(settings),
    redis,
    log: quiet(log),
    isGuest: true,
    place: (running, pool, key) =>
      pool === own ? { ...running, scheduler: inThisProcess(running, key, resident) } : running,
  });
  return {
    engine,
    metrics: cache?.metrics ?? [],
    async close() {
      await engine.close(new AbortController().signal);
      await versions.close();
      disconnectRedis(redis);
    },
  };
}

function inThisProcess(
  { model }: RunningVersion,
  key: string,
  resident: ResidentVersion,
): Scheduler {
  return keepsSequences(model.config)
    ? refuseSequences(model.name)
    : new ResidentScheduler(() => resident(key));
}

/** Which pool worker has a sequence is decided before the queue: here its requests might meet another one's state. */
function refuseSequences(name: string): Scheduler {
  const text =
    `model '${name}' has sequence_batching and cannot be called by a model of its own pool: ` +
    "expected the two in different pools";
  return {
    enqueue: ({ sink }) => sink.fail(new InferenceError(StatusCode.Unsupported, text)),
    inflight: 0,
    stop: () => Promise.resolve(),
  };
}

/** The gateways tell of the same models already. */
function quiet(log: Logger): Logger {
  return {
    error: (message, fields) => log.verbose(1, message, fields),
    warn: (message, fields) => log.verbose(1, message, fields),
    info: (message, fields) => log.verbose(1, message, fields),
    verbose: (level, message, fields) => log.verbose(level, message, fields),
    get verboseLevel() {
      return log.verboseLevel;
    },
  };
}
