import { randomBytes } from "node:crypto";
import { ModelControl, type ModelWish } from "../queue/model-control.ts";
import { QueueEngine } from "../queue/queue-engine.ts";
import { RemoteVersions } from "../queue/remote-versions.ts";
import type { ModelRepository } from "../repository/model-repository.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { systemClock } from "../serving/clock.ts";
import { ModelLifecycle } from "../serving/lifecycle/model-lifecycle.ts";
import type { Logger } from "../telemetry/logger.ts";
import { queueMetrics } from "../telemetry/queue-metrics.ts";
import { connectRedis, disconnectRedis } from "./connect-redis.ts";
import { openRepository } from "./model-repository.ts";
import { poolOf } from "./pool-file/pool-file.ts";
import { readPools } from "./pools.ts";
import { queueJobs } from "./queue-jobs.ts";
import { serveEngine } from "./serve-engine.ts";
import type { ReadSettings, Settings } from "./settings.ts";
import { lifecycleOptions, type StartedEngine } from "./start-engine.ts";
import { startLog } from "./start-log.ts";

/**
 * `tidepool gateway`: answers callers from pool workers behind a queue in Redis, any number of which, also none, are there.
 *
 * @returns the exit code, as that of serve
 */
export async function gateway(read: ReadSettings): Promise<number> {
  const { settings } = read;
  const log = await startLog(read, "gateway");
  const pools = await readPools(settings);
  const { repository } = await openRepository(settings);
  const redis = await connectRedis(settings, log);
  const versions = await RemoteVersions.open({
    gateway: randomBytes(9).toString("base64url"),
    pools: pools.pools.map(({ name }) => name),
    poolOf: (model) => poolOf(pools, model)?.name,
    redis,
    clock: systemClock,
    onChange: () => repository.tellChanged(),
  });
  const started = await startQueueEngine({ settings, repository, versions, redis, log });
  const code = await serveEngine(settings, log, started);
  await versions.close();
  disconnectRedis(redis);
  return code;
}

interface QueueEngineParts {
  readonly settings: Settings;
  readonly repository: ModelRepository;
  readonly versions: RemoteVersions;
  readonly redis: RedisConnections;
  readonly log: Logger;
}

/** Makes the engine whose versions pool workers run; resolves when it has loaded what it loads at the start. */
async function startQueueEngine(parts: QueueEngineParts): Promise<StartedEngine> {
  const { settings, repository, versions, log } = parts;
  const { commands, subscriber } = parts.redis;
  let engine: QueueEngine | undefined;
  const follow = async (wish: ModelWish): Promise<void> => {
    await engine?.follow(wish).catch((err: unknown) => {
      log.warn(`model '${wish.name}' could not follow another gateway`, { err });
    });
  };
  const control =
    settings.modelControlMode === "explicit"
      ? await ModelControl.open(commands, subscriber, (wish) => void follow(wish))
      : undefined;
  const lifecycle = new ModelLifecycle(
    repository,
    (source) => versions.start(source, control?.generation(source.name) ?? 0),
    lifecycleOptions(settings),
    log,
  );
  const { strictReadiness } = settings;
  engine = new QueueEngine(lifecycle, {
    strictReadiness,
    control,
    leave: () => versions.leave(),
  });
  const failures = await lifecycle.start();
  // What was asked for while this gateway was not there, or not ready to follow, wins over its flags.
  const wishes = Array.from(control?.wishes.values() ?? []);
  for (const wish of wishes) await follow(wish);
  const metrics = [async () => queueMetrics(await versions.observations())];
  const jobs = await queueJobs(settings, engine, versions, commands);
  return { engine, failures, jobs, metrics };
}
