import { queueMetrics } from "../telemetry/queue-metrics.ts";
import { openAccess } from "./access.ts";
import { connectRedis, disconnectRedis } from "./connect-redis.ts";
import { openRepository } from "./model-repository.ts";
import { openQueueEngine } from "./open-queue-engine.ts";
import { readPools } from "./pools.ts";
import { queueJobs } from "./queue-jobs.ts";
import { serveEngine } from "./serve-engine.ts";
import type { ReadSettings } from "./settings.ts";
import type { StartedEngine } from "./start-engine.ts";
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
  const access = await openAccess(settings, log, redis);
  const { engine, versions, failures, cache } = await openQueueEngine({
    settings,
    repository,
    pools,
    redis,
    log,
  });
  const started: StartedEngine = {
    engine,
    failures,
    jobs: await queueJobs(settings, engine, versions, redis.commands),
    metrics: [async () => queueMetrics(await versions.observations()), ...(cache?.metrics ?? [])],
  };
  const code = await serveEngine(settings, log, started, access);
  await versions.close();
  disconnectRedis(redis);
  return code;
}
