import { randomBytes } from "node:crypto";
import { totalmem } from "node:os";
import { ResidentVersions } from "../pool/resident-versions.ts";
import { PoolWorker } from "../queue/pool-worker.ts";
import { TicketStore } from "../queue/ticket-store.ts";
import { systemClock } from "../serving/clock.ts";
import { connectRedis, disconnectRedis } from "./connect-redis.ts";
import { endSignal, endWithin, exitAtOnce } from "./drain.ts";
import { openRepository } from "./model-repository.ts";
import type { Pool } from "./pool-file/pool.ts";
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
  const log = await startLog(read);
  const { name, memoryBudgetBytes, concurrency } = await poolOfSettings(settings);
  const [repository, redis, start] = await Promise.all([
    openRepository(settings),
    connectRedis(settings, log),
    localStarter(settings, log),
  ]);
  const tickets = new TicketStore(name, redis.commands);
  const versions = new ResidentVersions({
    budgetBytes: memoryBudgetBytes ?? totalmem() / 2,
    find: versionFinder({ tickets, repository, start }),
  });
  const id = settings.poolWorkerId || randomBytes(6).toString("base64url");
  const asked = endSignal(settings.endWithStdin);
  const worker = await PoolWorker.start({
    id,
    pool: name,
    redis,
    concurrency,
    versions,
    clock: systemClock,
    log,
  });
  log.info("pool worker takes requests", { pool: name, poolWorker: id });
  const signal = await asked;
  log.info("ending: requests in hand get their answers", { signal });
  const clean = await endWithin(settings.exitTimeoutSecs, async () => {
    await worker.close();
    await versions.close();
  });
  if (!clean) {
    log.error("ended with requests in hand, which others take over: --exit-timeout-secs was over");
    exitAtOnce(1);
  }
  disconnectRedis(redis);
  log.info("ended");
  return 0;
}

async function poolOfSettings(settings: Settings): Promise<Pool> {
  const { pools } = await readPools(settings);
  const found = pools.find(({ name }) => name === settings.pool);
  if (found) return found;
  const known = pools.map(({ name }) => name).join(", ");
  throw new UsageError(`--pool: given '${settings.pool}', expected one of ${known}`);
}
