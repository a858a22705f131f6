import type { Engine } from "../protocol/engine.ts";
import type { JobDurability, Jobs } from "../protocol/job.ts";
import type { WebhookSender } from "../protocol/webhook.ts";
import { DiskMark } from "../queue/job-disk-mark.ts";
import { GatewayJobs } from "../queue/job-gateway.ts";
import type { RemoteVersions } from "../queue/remote-versions.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { checkRedis } from "../redis/checks.ts";
import { connect, type Redis } from "../redis/connection.ts";
import { redisUrlOf } from "./connect-redis.ts";
import { jobObjects } from "./job-objects.ts";
import { jobLimits } from "./job-limits.ts";
import type { Settings } from "./settings.ts";

export interface QueueJobsParts {
  readonly engine: Engine;
  readonly versions: RemoteVersions;
  readonly commands: Redis;
  readonly webhooks: WebhookSender | undefined;
  readonly tracer: Tracer;
}

/** Keeps the jobs of a gateway in the Redis of its queues, as durable as that is. */
export async function queueJobs(
  settings: Settings,
  { engine, versions, commands, webhooks, tracer }: QueueJobsParts,
): Promise<Jobs> {
  return new GatewayJobs({
    commands,
    objects: jobObjects(settings, commands),
    links: versions.links,
    linkOf: (model) => versions.linkOf(model),
    keyOf: (model) => versions.keyOf(model),
    engine,
    webhooks,
    tracer: tracer.resumes ? tracer : undefined,
    limits: jobLimits(settings),
    ...(await durabilityOf(settings, commands)),
  });
}

/** A single Redis that writes its file once a second can be asked when it has; a Cluster has no one whom to ask. */
async function durabilityOf(
  settings: Settings,
  commands: Redis,
): Promise<{ readonly durability: JobDurability; readonly diskMark?: DiskMark }> {
  const { durability, waitAof } = await checkRedis(commands);
  if (durability !== "everysec" || !waitAof || commands.isCluster) return { durability };
  const connection = await connect(redisUrlOf(settings), "commands");
  return { durability: "always", diskMark: new DiskMark(connection) };
}
