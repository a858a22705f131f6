import { createHmac, randomBytes } from "node:crypto";
import { parseAllowedTarget } from "../../gateway/webhooks/allowed-target.ts";
import {
  SignedWebhooks,
  type SignedWebhooksOptions,
} from "../../gateway/webhooks/signed-webhooks.ts";
import { SilentLog } from "./silent-log.ts";
import type { ReceivedWebhook } from "./webhook-receiver.ts";

/** A secret as Standard Webhooks writes it. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

export const webhookSecret = newWebhookSecret();

/** A sender that may go to receivers on this machine, and is quick to try again. */
export function localWebhooks(
  ports: readonly number[],
  more: Partial<SignedWebhooksOptions> = {},
): SignedWebhooks {
  const allowed = [parseAllowedTarget("127.0.0.1")].flatMap((one) => one ?? []);
  return new SignedWebhooks({
    secrets: (tenant) => (tenant === "default" ? [webhookSecret] : []),
    policy: { allowHttp: true, ports, allowed },
    retries: { attempts: 4, firstMilliseconds: 10 },
    timeoutMilliseconds: 2000,
    maxUndelivered: 100,
    log: new SilentLog(),
    ...more,
  });
}

/** The signature as the specification says it, computed by hand. */
export function signatureOf(secret: string, { headers, body }: ReceivedWebhook): string {
  const { "webhook-id": id, "webhook-timestamp": timestamp } = headers;
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return `v1,${mac}`;
}
