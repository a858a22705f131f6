import { invalidArgument } from "../../protocol/error.ts";
import type { Delivery, DeliveryAttempt, WebhookSender } from "../../protocol/webhook.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { post, type PostAnswer, RefusedTargetError, type Resolve } from "./post.ts";
import { type RetryRules, retryAt } from "./retry.ts";
import { signatureHeaders } from "./signature.ts";
import { readTarget, type TargetPolicy } from "./target-policy.ts";

export interface SignedWebhooksOptions {
  /** The secrets of a tenant. */
  readonly secrets: (tenant: string) => readonly string[];
  readonly policy: TargetPolicy;
  readonly retries: RetryRules;
  /** Of one attempt, with its redirects. */
  readonly timeoutMilliseconds: number;
  /** Of one tenant in one pool, or in serve. */
  readonly maxUndelivered: number;
  readonly log: Logger;
  /** @defaultValue what the system says */
  readonly resolve?: Resolve;
}

/** More than so many at a time would let one target that hangs hold up all others, or one tenant with many of them. */
const mostOfTarget = 8;
const mostOfTenant = 16;

/** Sends webhooks as Standard Webhooks has them, to targets that the policy allows. */
export class SignedWebhooks implements WebhookSender {
  readonly #options: SignedWebhooksOptions;
  readonly #toTargets = new Places(mostOfTarget);
  readonly #ofTenants = new Places(mostOfTenant);

  constructor(options: SignedWebhooksOptions) {
    this.#options = options;
  }

  get maxUndelivered(): number {
    return this.#options.maxUndelivered;
  }

  check(url: string, tenant: string): void {
    readTarget(this.#options.policy, url);
    if (this.#options.secrets(tenant).length > 0) return;
    throw invalidArgument(
      `Webhook-URL: given for tenant '${tenant}', expected one that has a webhook secret`,
    );
  }

  async attempt(delivery: Delivery, attempt: number): Promise<DeliveryAttempt | undefined> {
    const { host } = new URL(delivery.url);
    const { tenant } = delivery;
    if (this.#toTargets.full(host) || this.#ofTenants.full(tenant)) return undefined;
    this.#toTargets.enter(host);
    this.#ofTenants.enter(tenant);
    try {
      return await this.#attempt(delivery, attempt);
    } finally {
      this.#toTargets.leave(host);
      this.#ofTenants.leave(tenant);
    }
  }

  async #attempt(delivery: Delivery, attempt: number): Promise<DeliveryAttempt> {
    const { id, type } = delivery;
    const { retries, log } = this.#options;
    const at = Date.now();
    const began = performance.now();
    const { status, why, retryAfter } = await this.#send(delivery, at);
    const milliseconds = Math.round(performance.now() - began);
    const known = { id, type, attempt, at, milliseconds, ...(status !== undefined && { status }) };
    if (why === undefined) return { ...known, outcome: "delivered" };
    if (status === 410) return { ...known, outcome: "gone", why };
    if (attempt >= retries.attempts) {
      log.warn("a webhook is given up", { delivery: id, tenant: delivery.tenant, attempt, why });
      return { ...known, outcome: "exhausted", why };
    }
    const moment = { now: Date.now(), random: Math.random() };
    return {
      ...known,
      outcome: "retry",
      why,
      nextAt: retryAt(retries, attempt, retryAfter, moment),
    };
  }

  async #send({ id, url, tenant, body, traceparent }: Delivery, now: number): Promise<Sent> {
    const { secrets, policy, resolve, timeoutMilliseconds } = this.#options;
    const valid = secrets(tenant);
    if (valid.length === 0) return { why: "the tenant has no webhook secret" };
    const headers = {
      "Content-Type": "application/json",
      "User-Agent": "tidepool",
      ...signatureHeaders(valid, id, now, body),
      ...(traceparent !== undefined && { traceparent }),
    };
    const signal = AbortSignal.timeout(timeoutMilliseconds);
    try {
      const answer = await post(
        { url, headers, body },
        { policy, signal, ...(resolve && { resolve }) },
      );
      const { status } = answer;
      return status >= 200 && status < 300 ? answer : { ...answer, why: `answered ${status}` };
    } catch (error) {
      return { why: signal.aborted ? `no answer in ${timeoutMilliseconds} ms` : reasonOf(error) };
    }
  }
}

/** Counts what is on its way, by name. */
class Places {
  readonly #most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  full(name: string): boolean {
    return (this.#taken.get(name) ?? 0) >= this.#most;
  }

  enter(name: string): void {
    this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1);
  }

  leave(name: string): void {
    const left = (this.#taken.get(name) ?? 1) - 1;
    if (left > 0) this.#taken.set(name, left);
    else this.#taken.delete(name);
  }
}

/** Without a reason it has arrived. */
interface Sent extends Partial<PostAnswer> {
  readonly why?: string;
}

/** Who chose the target reads it: the code of an error, and never its text, which has the address. */
function reasonOf(error: unknown): string {
  if (error instanceof RefusedTargetError) return error.message;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^[A-Z][A-Z0-9_]{1,63}$/u.test(code) ? `connection failed: ${code}` : "connection failed";
}
