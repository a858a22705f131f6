import { queueMetrics } from "../telemetry/queue-metrics.ts";
import { openAccess } from "./access.ts";
import { openAdmission } from "./admission.ts";
import { openAuditLog } from "./audit-log.ts";
import { connectRedis, disconnectRedis } from "./connect-redis.ts";
import { openRepository } from "./model-repository.ts";
import { openUploads } from "./model-uploads.ts";
import { openQueueEngine } from "./open-queue-engine.ts";
import { readPools } from "./pools.ts";
import { queueJobs } from "./queue-jobs.ts";
import { openQueueWebhooks } from "./queue-webhooks.ts";
import { serveEngine } from "./serve-engine.ts";
import type { ReadSettings } from "./settings.ts";
import type { StartedEngine } from "./start-engine.ts";
import { startLog } from "./start-log.ts";
import { openTls } from "./tls.ts";
import { openTracer } from "./tracer.ts";
import { openWebhooks } from "./webhooks.ts";

/**
 * `tidepool gateway`: answers callers from pool workers behind a queue in Redis, any number of which, also none, are there.
 *
 * @returns the exit code, as that of serve
 */
export async function gateway(read: ReadSettings): Promise<number> {
  const { settings } = read;
  const log = await startLog(read, "gateway");
  const audit = openAuditLog(settings, log, "gateway");
  const tls = await openTls(settings, log);
  const tracer = await openTracer(settings, log);
  const pools = await readPools(settings);
  const { repository } = await openRepository(settings);
  const redis = await connectRedis(settings, log);
  const access = await openAccess(settings, log, redis);
  const admission = await openAdmission(settings, redis);
  const { engine, versions, failures, cache } = await openQueueEngine({
    settings,
    repository,
    pools,
    redis,
    log,
    audit,
  });
  const { commands } = redis;
  const sender = await openWebhooks(settings, log);
  const webhooks =
    sender && (await openQueueWebhooks(settings, { sender, links: versions.links, commands, log }));
  const started: StartedEngine = {
    engine,
    failures,
    uploads: await openUploads(settings, { repository, engine, log }),
    jobs: await queueJobs(settings, { engine, versions, commands, webhooks: sender, tracer }),
    metrics: [
      async () => queueMetrics(await versions.observations()),
      ...(cache?.metrics ?? []),
      ...(webhooks?.metrics ?? []),
    ],
  };
  const door = { access, admission, tls, tracer, audit };
  const code = await serveEngine(settings, log, started, door);
  await webhooks?.close();
  await versions.close();
  disconnectRedis(redis);
  return code;
}
