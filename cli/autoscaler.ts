import { podAccess } from "../autoscaler/kubernetes-api.ts";
import { KubernetesScaler } from "../autoscaler/kubernetes-scaler.ts";
import type { WorkerExit } from "../autoscaler/crash-backoff.ts";
import { defaultWindows } from "../autoscaler/decide.ts";
import { ScalingLoop } from "../autoscaler/loop.ts";
import type { ScaledPool } from "../autoscaler/pool-loop.ts";
import { ProcessScaler } from "../autoscaler/process-scaler.ts";
import type { Scaler } from "../autoscaler/scaler.ts";
import { names } from "../queue/names.ts";
import { Lease } from "../redis/lease.ts";
import { autoscalerMetrics } from "../telemetry/autoscaler-metrics.ts";
import type { Logger } from "../telemetry/logger.ts";
import { MetricsRegistry } from "../telemetry/registry.ts";
import { requireModels } from "./check-settings.ts";
import { childCommand } from "./child-command.ts";
import { connectRedis, disconnectRedis } from "./connect-redis.ts";
import { endSignal, endWithin, exitAtOnce } from "./drain.ts";
import { listenKeda } from "./keda.ts";
import { openMetricsPort } from "./metrics-port.ts";
import { processMetrics } from "./metrics.ts";
import type { Pool } from "./pool-file/pool.ts";
import { readPools } from "./pools.ts";
import { redisObserver } from "./redis-observer.ts";
import type { ReadSettings, Settings } from "./settings.ts";
import { startLog } from "./start-log.ts";

const leaseMilliseconds = 5000;

/**
 * `tidepool autoscaler`: makes pool workers come and go with the requests. Of several only one acts; each answers KEDA.
 *
 * @returns the exit code
 */
export async function autoscaler(read: ReadSettings, args: readonly string[]): Promise<number> {
  const { settings } = read;
  const log = await startLog(read, "autoscaler");
  const { pools } = await readPools(settings);
  if (pools.some(({ scaler }) => scaler.kind === "process")) requireModels(settings);
  const redis = await connectRedis(settings, log);
  const poolNames = pools.map(({ name }) => name);
  const observer = await redisObserver(poolNames, redis.commands, redis.subscriber);
  const lease = new Lease({
    redis: redis.commands,
    key: names.autoscalerLease,
    lengthMilliseconds: leaseMilliseconds,
    onChange: (held) => log.info(held ? "this autoscaler acts" : "this autoscaler only watches"),
  });
  let loop: ScalingLoop | undefined;
  const scaled = await scaledPools(pools, { settings, args, log }, (pool, exit) =>
    loop?.exited(pool, exit),
  );
  const asked = endSignal(settings.endWithStdin);
  loop = new ScalingLoop({
    pools: scaled,
    observer,
    leads: () => lease.held,
    log,
    intervalMilliseconds: settings.autoscalerIntervalMs,
  });
  const { autoscalerMetricsPort: port } = settings;
  await openMetricsPort({ settings, port, registry: scalingMetrics(loop), redis, log });
  const keda = await listenKeda(settings, pools, observer, log);
  log.info("autoscaler watches", { pools: poolNames, ...(keda && { keda: keda.address }) });
  const signal = await asked;
  log.info("ending: pool workers of this machine end, too", { signal });
  loop.close();
  const clean = await endWithin(settings.exitTimeoutSecs, async (overdue) => {
    await Promise.all([keda?.close(overdue), ...scaled.map(({ scaler }) => scaler.close(overdue))]);
    await lease.close();
  });
  if (!clean) exitAtOnce(1);
  disconnectRedis(redis);
  log.info("ended");
  return 0;
}

function scalingMetrics(loop: ScalingLoop): MetricsRegistry {
  const registry = new MetricsRegistry();
  registry.add(() =>
    autoscalerMetrics(
      loop.status().map(({ observation, ...status }) => ({
        ...status,
        demand: observation?.demand ?? 0,
      })),
    ),
  );
  registry.add(processMetrics());
  return registry;
}

interface ScalerEnvironment {
  readonly settings: Settings;
  readonly args: readonly string[];
  readonly log: Logger;
}

type Exited = (pool: string, exit: WorkerExit) => void;

/** Pools that others scale have no scaler here. */
async function scaledPools(
  pools: readonly Pool[],
  environment: ScalerEnvironment,
  exited: Exited,
): Promise<readonly ScaledPool[]> {
  const scaled = await Promise.all(
    pools.map(async (pool) => ({ pool, scaler: await scalerOf(pool, environment, exited) })),
  );
  return scaled.flatMap(({ pool, scaler }) =>
    scaler ? [{ name: pool.name, policy: { ...defaultWindows, ...pool }, scaler }] : [],
  );
}

async function scalerOf(
  pool: Pool,
  { settings, args, log }: ScalerEnvironment,
  exited: Exited,
): Promise<Scaler | undefined> {
  const { name, scaler } = pool;
  if (scaler.kind === "process") return processScaler(name, settings, args, exited);
  if (scaler.kind !== "kubernetes") return undefined;
  const { namespace, deployment } = scaler;
  const target = { kind: "deployments" as const, namespace, name: deployment };
  return KubernetesScaler.open({ access: podAccess(process.env), target, log });
}

function processScaler(
  pool: string,
  settings: Settings,
  args: readonly string[],
  exited: Exited,
): Scaler {
  return new ProcessScaler({
    command: ({ id, demandSeenAt, decidedAt }) => ({
      ...childCommand("pool", args, [
        `--pool=${pool}`,
        `--pool-worker-id=${id}`,
        `--demand-seen-at=${demandSeenAt}`,
        `--decided-at=${decidedAt}`,
      ]),
      env: process.env,
    }),
    graceMilliseconds: settings.exitTimeoutSecs * 1000 + 2000,
    onExit: (exit) => exited(pool, exit),
    // Lines of its log: they are JSON already, and know who they are from.
    onLine: (_, stream, line) => process[stream].write(`${line}\n`),
  });
}
