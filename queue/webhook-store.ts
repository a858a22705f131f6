import { type Delivery, type DeliveryAttempt, keptAttempts } from "../protocol/webhook.ts";
import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";

/** A webhook that is listed, and whose it is. */
export type ListedWebhook = Pick<Delivery, "id" | "tenant">;

/**
 * What is known in Redis of the webhooks of one pool's jobs: which ones nobody has been told of yet, and what came of
 * attempts. A job that ends comes among the undelivered ones in the same step.
 */
export class WebhookStore {
  readonly #pool: string;
  readonly #commands: Redis;

  constructor(pool: string, commands: Redis) {
    this.#pool = pool;
    this.#commands = commands;
  }

  async isUndelivered(webhook: ListedWebhook): Promise<boolean> {
    return (await this.#commands.zscore(this.#undelivered, entryOf(webhook))) !== null;
  }

  /** How many undelivered ones the tenant has. */
  async undeliveredOf(tenant: string): Promise<number> {
    return Number(await this.#commands.hget(names.webhooksOfTenants(this.#pool), tenant));
  }

  /** Some of the undelivered ones. @param cursor "0" at first, then what came with the ones before */
  async undelivered(cursor: string): Promise<[cursor: string, webhooks: readonly ListedWebhook[]]> {
    const [next, members] = await this.#commands.zscan(this.#undelivered, cursor, "COUNT", 100);
    return [next, members.filter((_, index) => index % 2 === 0).map(listedWebhook)];
  }

  /** Nobody will be told of it. */
  async forget(webhook: ListedWebhook): Promise<void> {
    const { tenant } = webhook;
    const entry = entryOf(webhook);
    const counts = names.webhooksOfTenants(this.#pool);
    await this.#commands.eval(forgetScript, 2, this.#undelivered, counts, entry, tenant);
  }

  /** Keeps an attempt as long as its job is kept; after the last one the webhook is undelivered no longer. */
  async record(attempt: DeliveryAttempt, tenant: string): Promise<void> {
    const job = jobOfDelivery(attempt.id);
    await this.#commands.eval(
      recordScript,
      4,
      this.#undelivered,
      names.webhooksOfTenants(this.#pool),
      names.job(this.#pool, job),
      names.deliveries(this.#pool, job),
      entryOf({ id: attempt.id, tenant }),
      tenant,
      JSON.stringify(attempt),
      keptAttempts,
      attempt.nextAt ?? "",
    );
  }

  /** Those of a job, the first one first. */
  async attempts(job: string): Promise<readonly DeliveryAttempt[]> {
    const texts = await this.#commands.lrange(names.deliveries(this.#pool, job), 0, -1);
    return texts.map((text): DeliveryAttempt => JSON.parse(text));
  }

  /** How many are undelivered, and since when the oldest of them is. */
  async observe(): Promise<{ readonly count: number; readonly since: number | undefined }> {
    const [count, oldest] = await Promise.all([
      this.#commands.zcard(this.#undelivered),
      this.#commands.zrange(this.#undelivered, "0", "0", "WITHSCORES"),
    ]);
    return { count, since: oldest[1] === undefined ? undefined : Number(oldest[1]) };
  }

  get #undelivered(): string {
    return names.undeliveredWebhooks(this.#pool);
  }
}

/** What `jobScripts.change` lists. */
export function listedWebhook(entry: string): ListedWebhook {
  const blank = entry.indexOf(" ");
  return { id: entry.slice(0, blank), tenant: entry.slice(blank + 1) };
}

function entryOf({ id, tenant }: ListedWebhook): string {
  return `${id} ${tenant}`;
}

/** The job of which a webhook tells: what stands before how often that had changed. */
export function jobOfDelivery(id: string): string {
  return id.slice(0, id.lastIndexOf("_"));
}

/** KEYS undelivered webhooks, how many each tenant has. ARGV webhook, tenant. */
const forgetScript = `
if redis.call("zrem", KEYS[1], ARGV[1]) == 0 then return end
if redis.call("hincrby", KEYS[2], ARGV[2], -1) < 1 then redis.call("hdel", KEYS[2], ARGV[2]) end`;

/** KEYS as before, job, its attempts. ARGV as before, attempt, most attempts, when the next one comes. */
const recordScript = `
local left = redis.call("pttl", KEYS[3])
if left > 0 then
  redis.call("rpush", KEYS[4], ARGV[3])
  redis.call("ltrim", KEYS[4], -ARGV[4], -1)
  redis.call("pexpire", KEYS[4], left)
end
if ARGV[5] ~= "" then return end
${forgetScript}`;
