import { randomBytes } from "node:crypto";
import { totalmem } from "node:os";
import { ResidentVersions } from "../pool/resident-versions.ts";
import { PoolChannel } from "../queue/pool-channel.ts";
import { PoolCounters } from "../queue/pool-counters.ts";
import { PoolWorker } from "../queue/pool-worker.ts";
import { Presence } from "../queue/presence.ts";
import { TicketStore } from "../queue/ticket-store.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { systemClock } from "../serving/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { modelCacheCounters } from "../telemetry/model-cache-metrics.ts";
import type { MetricSource } from "../telemetry/registry.ts";
import { openAuditLog } from "./audit-log.ts";
import { connectRedis, disconnectRedis } from "./connect-redis.ts";
import { endSignal, endWithin, exitAtOnce } from "./drain.ts";
import { EngineHost } from "./engine-host.ts";
import { jobObjects } from "./job-objects.ts";
import { openRepository } from "./model-repository.ts";
import type { Pool } from "./pool-file/pool.ts";
import { usePoolDevice } from "./pool-device.ts";
import type { PoolEngine } from "./pool-engine.ts";
import { versionFinder } from "./pool-versions.ts";
import { readPools } from "./pools.ts";
import type { ReadSettings, Settings } from "./settings.ts";
import { localStarter } from "./start-engine.ts";
import { startLog } from "./start-log.ts";
import { UsageError } from "./usage-error.ts";

/**
 * `tidepool pool`: one pool worker. It takes requests from its pool's queue and loads models when they are first asked for.
 *
 * @returns the exit code: 0 after a clean end, 1 when requests had to be left to other pool workers
 */
export async function pool(read: ReadSettings): Promise<number> {
  const { settings } = read;
  const log = await startLog(read, "pool");
  const audit = openAuditLog(settings, log, "pool");
  const { name, device, memoryBudgetBytes, concurrency } = await poolOfSettings(settings);
  await usePoolDevice(name, device);
  let opened: Promise<PoolEngine> | undefined;
  let engineMetrics: readonly MetricSource[] = [];
  // Few models ask for others: what answers them is opened by the first that does.
  const host = new EngineHost(async () => {
    opened ??= import("./pool-engine.ts").then(({ openPoolEngine }) =>
      openPoolEngine({
        settings,
        pool: name,
        repository,
        resident: (key) => versions.get(key),
        log,
      }),
    );
    opened.catch(() => (opened = undefined));
    const { engine, metrics } = await opened;
    engineMetrics = metrics;
    return engine;
  }, audit);
  const id = settings.poolWorkerId || randomBytes(6).toString("base64url");
  const [{ repository, cacheCounters }, { redis, channel }, start] = await Promise.all([
    openRepository(settings),
    joinPool(settings, name, id, log),
    localStarter(settings, log, host),
  ]);
  const tickets = new TicketStore(name, redis.commands);
  const versions = new ResidentVersions({
    budgetBytes: memoryBudgetBytes ?? totalmem() / 2,
    find: versionFinder({ tickets, repository, start, channel, decidedAt: decidedAt(settings) }),
  });
  const counters = new PoolCounters(name, redis.commands);
  for (const [metric, counter] of modelCacheCounters)
    counters.follow(metric, () => cacheCounters[counter]);
  const asked = endSignal(settings.endWithStdin);
  const poolWorker = await PoolWorker.start({
    id,
    pool: name,
    redis,
    channel,
    concurrency,
    // The other half is for those who wait for an answer.
    drainMilliseconds: settings.exitTimeoutSecs * 500,
    versions,
    counters,
    objects: jobObjects(settings, redis.commands),
    clock: systemClock,
    log,
  });
  log.info("pool worker takes requests", { pool: name, poolWorker: id });
  if (settings.poolMetricsPort !== 0) {
    // What writes metrics is a tenth of all that a pool worker would load before it can take requests.
    const { openPoolMetrics } = await import("./pool-metrics.ts");
    const more = (): readonly MetricSource[] => [() => host.metrics.families(), ...engineMetrics];
    const own = { poolWorker: id, versions, cacheCounters, more };
    await openPoolMetrics({ settings, log, redis, ...own });
  }
  const signal = await asked;
  log.info("ending: requests in hand get their answers", { signal });
  const clean = await endWithin(settings.exitTimeoutSecs, async () => {
    await poolWorker.close();
    await (await opened)?.close();
    await versions.close();
  });
  if (!clean) {
    log.error("ended with requests in hand, which others take over: --exit-timeout-secs was over");
    audit.flush();
    exitAtOnce(1);
  }
  disconnectRedis(redis);
  await audit.close();
  log.info("ended");
  return 0;
}

interface JoinedPool {
  readonly redis: RedisConnections;
  readonly channel: PoolChannel;
}

/** Connects to Redis, and tells those who wait there that this pool worker is coming. */
async function joinPool(
  settings: Settings,
  name: string,
  id: string,
  log: Logger,
): Promise<JoinedPool> {
  const redis = await connectRedis(settings, log);
  const { commands, subscriber } = redis;
  const channel = await PoolChannel.open(name, commands, subscriber);
  const now = Date.now();
  await new Presence(name, commands).say(
    { id, state: "starting", inFlight: 0, sequences: 0, startedAt: now, resident: [] },
    now,
  );
  channel.publish({ type: "starting" });
  return { redis, channel };
}

/** Without an autoscaler that tells, nobody knows more than when the process began. */
function decidedAt({ decidedAt: told = Infinity }: Settings): number {
  return Math.min(told, performance.timeOrigin);
}

async function poolOfSettings(settings: Settings): Promise<Pool> {
  const { pools } = await readPools(settings);
  const found = pools.find(({ name }) => name === settings.pool);
  if (found) return found;
  const known = pools.map(({ name }) => name).join(", ");
  throw new UsageError(`--pool: given '${settings.pool}', expected one of ${known}`);
}
