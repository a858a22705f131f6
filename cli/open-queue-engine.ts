import { randomBytes } from "node:crypto";
import { openCacheFlushes } from "../queue/cache-flushes.ts";
import { ModelControl, type ModelWish } from "../queue/model-control.ts";
import { QueueEngine } from "../queue/queue-engine.ts";
import { RemoteVersions } from "../queue/remote-versions.ts";
import { isUsable } from "../redis/connection.ts";
import type { RedisConnections } from "../redis/connections.ts";
import type { ModelRepository } from "../repository/model-repository.ts";
import { systemClock } from "../serving/clock.ts";
import { type LoadFailure, ModelLifecycle } from "../serving/lifecycle/model-lifecycle.ts";
import type { RunningVersion, VersionSource } from "../serving/running-version.ts";
import type { AuditLog } from "../telemetry/audit-log.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type PoolFile, poolOf } from "./pool-file/pool-file.ts";
import { type OpenCaching, openResponseCaching } from "./response-caching.ts";
import type { Settings } from "./settings.ts";
import { lifecycleOptions } from "./start-engine.ts";

export interface QueueEngineParts {
  readonly settings: Settings;
  readonly repository: ModelRepository;
  readonly pools: PoolFile;
  readonly redis: RedisConnections;
  readonly log: Logger;
  /** Told of what the repository changes; without it nobody is. */
  readonly audit?: AuditLog;
  /** True where what ends is still served by gateways. */
  readonly isGuest?: boolean;
  /** What stands in the place of a version of that pool, by its key; by default all go through the queue. */
  readonly place?: (
    running: RunningVersion,
    pool: string | undefined,
    key: string,
  ) => RunningVersion;
}

/** An engine whose versions pool workers run, when it has loaded what it loads at the start. */
export interface OpenQueueEngine {
  readonly engine: QueueEngine;
  readonly versions: RemoteVersions;
  readonly failures: readonly LoadFailure[];
  readonly cache: OpenCaching | undefined;
}

/** Opens the near side of the queue: for a gateway, and for models that ask others. */
export async function openQueueEngine(parts: QueueEngineParts): Promise<OpenQueueEngine> {
  const { settings, repository, pools, log, audit, place } = parts;
  const { commands, subscriber } = parts.redis;
  const nameOfPool = (model: string): string | undefined => poolOf(pools, model)?.name;
  const versions = await RemoteVersions.open({
    gateway: randomBytes(9).toString("base64url"),
    pools: pools.pools,
    poolOf: nameOfPool,
    redis: parts.redis,
    clock: systemClock,
    onChange: () => repository.tellChanged(),
  });
  if (parts.isGuest) versions.leave();
  let engine: QueueEngine | undefined;
  const follow = async (wish: ModelWish): Promise<void> => {
    await engine?.follow(wish).catch((err: unknown) => {
      log.warn(`model '${wish.name}' could not follow another gateway`, { err });
    });
  };
  const control =
    settings.modelControlMode !== "poll"
      ? await ModelControl.open(commands, subscriber, (wish) => void follow(wish))
      : undefined;
  const cache = await openResponseCaching(settings, log);
  const tellFlush = cache && (await openCacheFlushes(commands, subscriber, cache.caching));
  const generation = ({ name }: VersionSource): number => control?.generation(name) ?? 0;
  const start = async (source: VersionSource): Promise<RunningVersion> => {
    const running = await versions.start(source, generation(source));
    return place ? place(running, nameOfPool(source.name), versions.keyOf(running.model)) : running;
  };
  const lifecycle = new ModelLifecycle(
    repository,
    start,
    {
      ...lifecycleOptions(settings, audit),
      caching: cache?.caching,
      shareStatistics: (source, version, own) =>
        versions.shareStatistics(source, generation(source), version, own),
    },
    log,
  );
  engine = new QueueEngine(lifecycle, {
    strictReadiness: settings.strictReadiness,
    control,
    explicit: settings.modelControlMode === "explicit",
    reachable: () => isUsable(commands),
    leave: () => versions.leave(),
    flushCache:
      cache &&
      (async (name) => {
        await tellFlush?.(name);
        await cache.caching.flush(name);
      }),
  });
  const failures = await lifecycle.start();
  // What was asked for while this process was not there, or not ready to follow, wins over its flags.
  const wishes = Array.from(control?.wishes.values() ?? []);
  for (const wish of wishes) await follow(wish);
  return { engine, versions, failures, cache };
}
