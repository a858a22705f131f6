import { WebhookQueue, type WebhookQueueOptions } from "../queue/webhook-queue.ts";
import { connect } from "../redis/connection.ts";
import type { MetricSource } from "../telemetry/registry.ts";
import { webhookMetrics } from "../telemetry/webhook-metrics.ts";
import { redisUrlOf } from "./connect-redis.ts";
import type { Settings } from "./settings.ts";

/** A gateway's part in delivering webhooks. */
export interface QueueWebhooks {
  readonly metrics: readonly MetricSource[];
  close(): Promise<void>;
}

/** Opens it on a connection of its own, for the BullMQ Worker. */
export async function openQueueWebhooks(
  settings: Settings,
  options: Omit<WebhookQueueOptions, "blocking">,
): Promise<QueueWebhooks> {
  const blocking = await connect(redisUrlOf(settings), "blocking");
  const queue = new WebhookQueue({ ...options, blocking });
  return {
    metrics: [async () => webhookMetrics(await queue.observe(), Date.now())],
    async close() {
      await queue.close();
      blocking.disconnect();
    },
  };
}
