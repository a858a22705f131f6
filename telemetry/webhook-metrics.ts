import { type WebhookOutcome, webhookOutcomes } from "../protocol/webhook.ts";
import { type MetricFamily, single } from "./metric-family.ts";

/** Webhooks as a scrape reads them. */
export interface WebhookObservation {
  /** Those that will be tried, or tried again. */
  readonly undelivered: number;
  /** Since when the oldest of them is due, in milliseconds since the epoch. */
  readonly since: number | undefined;
  readonly attempts: Readonly<Partial<Record<WebhookOutcome, number>>>;
}

/** How webhooks get through. @param now milliseconds since the epoch */
export function webhookMetrics(
  { undelivered, since = Infinity, attempts }: WebhookObservation,
  now: number,
): readonly MetricFamily[] {
  return [
    {
      name: "tidepool_webhook_attempts_total",
      help: "Attempts to deliver a webhook by what came of them",
      type: "counter",
      samples: webhookOutcomes.map((outcome) => ({
        labels: { outcome },
        value: attempts[outcome] ?? 0,
      })),
    },
    single(
      "gauge",
      "tidepool_webhook_undelivered",
      "Webhooks that will be tried, or tried again",
      undelivered,
    ),
    single(
      "gauge",
      "tidepool_webhook_oldest_undelivered_seconds",
      "Age of the oldest webhook that is not delivered",
      Math.max(0, now - since) / 1000,
    ),
  ];
}
