import { type DeliveryAttempt, keptAttempts } from "../protocol/webhook.ts";
import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";

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

  async isUndelivered(id: string): Promise<boolean> {
    return (await this.#commands.zscore(this.#undelivered, id)) !== null;
  }

  /** Some of the undelivered ones. @param cursor "0" at first, then what came with the ones before */
  async undelivered(cursor: string): Promise<[cursor: string, ids: readonly string[]]> {
    const [next, members] = await this.#commands.zscan(this.#undelivered, cursor, "COUNT", 100);
    return [next, members.filter((_, index) => index % 2 === 0)];
  }

  /** Nobody will be told of it. */
  async forget(id: string): Promise<void> {
    await this.#commands.zrem(this.#undelivered, id);
  }

  /** Keeps an attempt as long as its job is kept; after the last one the webhook is undelivered no longer. */
  async record(attempt: DeliveryAttempt): Promise<void> {
    const job = jobOfDelivery(attempt.id);
    await this.#commands.eval(
      recordScript,
      3,
      names.job(this.#pool, job),
      names.deliveries(this.#pool, job),
      this.#undelivered,
      JSON.stringify(attempt),
      keptAttempts,
      attempt.nextAt === undefined ? attempt.id : "",
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

/** The job of which a webhook tells: what stands before how often that had changed. */
export function jobOfDelivery(id: string): string {
  return id.slice(0, id.lastIndexOf("_"));
}

/** KEYS job, its attempts, undelivered webhooks. ARGV attempt, most attempts, the webhook if it is over. */
const recordScript = `
local left = redis.call("pttl", KEYS[1])
if left > 0 then
  redis.call("rpush", KEYS[2], ARGV[1])
  redis.call("ltrim", KEYS[2], -ARGV[2], -1)
  redis.call("pexpire", KEYS[2], left)
end
if ARGV[3] ~= "" then redis.call("zrem", KEYS[3], ARGV[3]) end`;
