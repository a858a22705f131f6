import { Webhook } from "standardwebhooks";

/**
 * The headers by which a receiver knows who sends: those of Standard Webhooks, signed with each of the secrets, so that a
 * receiver that has one of them is content while they change.
 */
export function signatureHeaders(
  secrets: readonly string[],
  id: string,
  now: number,
  body: string,
): Readonly<Record<string, string>> {
  const at = new Date(now);
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now / 1000)),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(" "),
  };
}
