import type { WebhookSender } from "../protocol/webhook.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Opens what sends webhooks as the settings want them; undefined where they want none. */
export async function openWebhooks(
  settings: Settings,
  log: Logger,
): Promise<WebhookSender | undefined> {
  const { webhookSecretFile: file, webhookTimeoutSecs: timeoutSecs } = settings;
  if (file === undefined) return undefined;
  // Not everybody has webhooks: their code is loaded for those who do.
  const { SignedWebhooks } = await import("../gateway/webhooks/signed-webhooks.ts");
  const { WebhookSecrets } = await import("../gateway/webhooks/webhook-secrets.ts");
  const secrets = await WebhookSecrets.open(file, log).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--webhook-secret-file: given ${file}, ${reason}`, { cause });
  });
  return new SignedWebhooks({
    secrets: (tenant) => secrets.of(tenant),
    policy: {
      allowHttp: settings.webhookAllowHttp,
      ports: settings.webhookPort,
      allowed: settings.webhookAllowTarget,
    },
    retries: {
      attempts: settings.webhookAttempts,
      firstMilliseconds: settings.webhookRetrySecs * 1000,
    },
    timeoutMilliseconds: timeoutSecs * 1000,
    maxUndelivered: settings.webhookMaxUndelivered,
    log,
  });
}
