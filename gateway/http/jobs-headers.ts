import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { invalidArgument } from "../../protocol/error.ts";
import { inferenceHeaderContentLength } from "../../protocol/headers.ts";

/** How an infer call wants to be a job. */
export interface JobWish {
  /** `Prefer: respond-async`: the answer is the job, unless the job has ended in so many milliseconds. */
  readonly asyncAfterMilliseconds: number | undefined;
  /** `Idempotency-Key`: as a job it is run once, however often it is asked for. */
  readonly key: string | undefined;
  /** `Webhook-URL`: is told when the job has ended. */
  readonly webhook: string | undefined;
}

/** True for a call that may want to be a job: it is no ordinary one. */
export function asksForJob(headers: IncomingHttpHeaders): boolean {
  return (
    headers["prefer"] !== undefined ||
    headers["idempotency-key"] !== undefined ||
    headers["webhook-url"] !== undefined
  );
}

/** Undefined for a call that does not want to be a job; throws for a key that is none. */
export function jobWish(headers: IncomingHttpHeaders): JobWish | undefined {
  if (!asksForJob(headers)) return undefined;
  const preferences = preferencesOf(text(headers["prefer"]));
  const { "idempotency-key": given, "webhook-url": url } = headers;
  const key = given === undefined ? undefined : keyOf(text(given));
  const webhook = url === undefined ? undefined : text(url);
  if (webhook !== undefined && !preferences.has("respond-async")) {
    throw invalidArgument("Webhook-URL: expected Prefer: respond-async, too");
  }
  if (key === undefined && !preferences.has("respond-async")) return undefined;
  return {
    key,
    webhook,
    asyncAfterMilliseconds: preferences.has("respond-async")
      ? waitMilliseconds(preferences.get("wait"))
      : undefined,
  };
}

/** Equal for requests that are the same: what they ask, all that says how to read it, and who is told. */
export function requestDigest(
  { headers }: IncomingMessage,
  target: readonly string[],
  forwarded: ReadonlyMap<string, unknown>,
  body: Uint8Array,
): string {
  const headLength = headers[inferenceHeaderContentLength] ?? "";
  const { "webhook-url": webhook } = headers;
  return createHash("sha256")
    .update(
      JSON.stringify([
        target,
        headLength,
        [...forwarded],
        ...(webhook === undefined ? [] : [webhook]),
      ]),
    )
    .update(body)
    .digest("base64url");
}

const longestWaitSeconds = 60;
const keyPattern = /^[\u{20}-\u{7e}]{1,255}$/u;

/** RFC 7240: `name[=value][; parameters]`, with commas between them; the first of a name counts. */
function preferencesOf(header: string): ReadonlyMap<string, string> {
  const preferences = new Map<string, string>();
  for (const part of header.split(",")) {
    const [preference = ""] = part.split(";");
    const [name = "", value = ""] = preference.split("=").map((one) => one.trim().toLowerCase());
    if (!preferences.has(name)) preferences.set(name, unquoted(value));
  }
  return preferences;
}

function waitMilliseconds(seconds = "0"): number {
  return /^\d{1,9}$/u.test(seconds) ? Math.min(Number(seconds), longestWaitSeconds) * 1000 : 0;
}

/** The draft spells it as a quoted string; those without quotes are taken, too. */
function keyOf(header: string): string {
  const key = unquoted(header.trim());
  if (keyPattern.test(key)) return key;
  throw invalidArgument(
    `Idempotency-Key: given ${key.length} characters, expected 1 to 255 printable ones of ASCII`,
  );
}

function unquoted(value: string): string {
  return /^"(?<inner>.*)"$/su.exec(value)?.[1] ?? value;
}

function text(value: string | readonly string[] | undefined): string {
  return typeof value === "string" ? value : (value?.join(", ") ?? "");
}
