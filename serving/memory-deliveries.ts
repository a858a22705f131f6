import type {
  Delivery,
  DeliveryAttempt,
  WebhookOutcome,
  WebhookSender,
} from "../protocol/webhook.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { WebhookObservation } from "../telemetry/webhook-metrics.ts";

/** How long a webhook waits, more or less, whose target or tenant has as many as it may. */
const busyMilliseconds = 500;

type Listener = (attempt: DeliveryAttempt) => void;

interface Undelivered extends Pick<Delivery, "since" | "tenant"> {
  timer?: NodeJS.Timeout;
}

/** Webhooks of the jobs of one process, in its memory: those that are not delivered end with it. */
export class MemoryDeliveries {
  readonly sender: WebhookSender;
  readonly #log: Logger;
  /** The oldest first. */
  readonly #undelivered = new Map<string, Undelivered>();
  /** How many of those each tenant has. */
  readonly #ofTenants = new Map<string, number>();
  readonly #attempts: Partial<Record<WebhookOutcome, number>> = {};

  constructor(sender: WebhookSender, log: Logger) {
    this.sender = sender;
    this.#log = log;
  }

  /** Delivers it now, or as soon as that succeeds. @param listener is told of each attempt */
  add(delivery: Delivery, listener: Listener): void {
    const { id, since, tenant } = delivery;
    this.#undelivered.set(id, { since, tenant });
    this.#ofTenants.set(tenant, this.undeliveredOf(tenant) + 1);
    void this.#try(delivery, 1, listener);
  }

  undeliveredOf(tenant: string): number {
    return this.#ofTenants.get(tenant) ?? 0;
  }

  observe(): WebhookObservation {
    const [oldest] = this.#undelivered.values();
    const { size } = this.#undelivered;
    return { undelivered: size, since: oldest?.since, attempts: this.#attempts };
  }

  close(): void {
    const { size } = this.#undelivered;
    if (size > 0) this.#log.warn("webhooks are lost: this process ends", { webhooks: size });
    for (const id of this.#undelivered.keys()) this.#forget(id);
  }

  async #try(delivery: Delivery, attempt: number, listener: Listener): Promise<void> {
    const done = await this.sender.attempt(delivery, attempt);
    const entry = this.#undelivered.get(delivery.id);
    if (!done) {
      const wait = busyMilliseconds * (0.5 + Math.random());
      if (entry) entry.timer = setTimeout(() => void this.#try(delivery, attempt, listener), wait);
      return;
    }
    listener(done);
    this.#attempts[done.outcome] = (this.#attempts[done.outcome] ?? 0) + 1;
    if (done.nextAt === undefined) this.#forget(delivery.id);
    else if (entry) {
      const wait = done.nextAt - Date.now();
      entry.timer = setTimeout(() => void this.#try(delivery, attempt + 1, listener), wait);
    }
  }

  #forget(id: string): void {
    const entry = this.#undelivered.get(id);
    if (!entry) return;
    clearTimeout(entry.timer);
    this.#undelivered.delete(id);
    const left = this.undeliveredOf(entry.tenant) - 1;
    if (left > 0) this.#ofTenants.set(entry.tenant, left);
    else this.#ofTenants.delete(entry.tenant);
  }
}
