import type { Redis } from "../../redis/connection.ts";
import type { InFlight, PermitPool } from "./in-flight.ts";
import { shareOf } from "./points.ts";

export interface RedisPermitsOptions {
  readonly commands: Redis;
  readonly subscriber: Redis;
  /** Unlike that of any other process. */
  readonly gateway: string;
  /** How many gateways there are. */
  readonly gateways: () => number;
}

const keyPrefix = "tidepool:limits:in-flight:";
const channel = "tidepool:limits:pleas";
/** Permits of a gateway that has not said for so long that it has them are free. */
const leaseMilliseconds = 5000;
const settleMilliseconds = 250;
/** So many looks pass until what has not changed is said again. */
const looksBetween = 4;

/** Divides permits between the gateways that share a Redis; while it is away each keeps to its share of every bound. */
export class RedisPermits implements PermitPool {
  readonly #options: RedisPermitsOptions;
  /** Those who have permits, by their keys. */
  readonly #holders = new Map<string, InFlight>();
  readonly #timer: NodeJS.Timeout;
  #looks = 0;

  constructor(options: RedisPermitsOptions) {
    this.#options = options;
    const { subscriber, gateway } = options;
    subscriber.on("message", (from: string, message: string) => {
      if (from !== channel || message.startsWith(`${gateway} `)) return;
      void this.#holders.get(message.slice(message.indexOf(" ") + 1))?.yield();
    });
    // Without it permits are still let go of, a little later.
    subscriber.subscribe(channel).catch(() => {});
    this.#timer = setInterval(() => this.#settle(), settleMilliseconds).unref();
  }

  async hold(holder: InFlight, wanted: number): Promise<number> {
    const { commands, gateway, gateways } = this.#options;
    const { key, limit } = holder;
    if (wanted > 0) this.#holders.set(key, holder);
    const given = [gateway, wanted, limit, leaseMilliseconds];
    try {
      return Number(await commands.eval(holdScript, 1, keyPrefix + key, ...given));
    } catch {
      return Math.min(wanted, shareOf(limit, gateways()));
    }
  }

  plead({ key }: InFlight): void {
    const { commands, gateway } = this.#options;
    commands.publish(channel, `${gateway} ${key}`).catch(() => {});
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #settle(): void {
    this.#looks++;
    const anew = this.#looks % looksBetween === 0;
    for (const [key, holder] of this.#holders) {
      void holder.settle(anew);
      if (holder.used + holder.held === 0) this.#holders.delete(key);
    }
  }
}

/** What a gateway has stands in a field of its name: how many, and until when. */
const holdScript = `
local time = redis.call("time")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fields = redis.call("hgetall", KEYS[1])
local others = 0
for i = 1, #fields, 2 do
  if fields[i] ~= ARGV[1] then
    local count, untilTime = string.match(fields[i + 1], "(%d+) (%d+)")
    if tonumber(untilTime) > now then others = others + count
    else redis.call("hdel", KEYS[1], fields[i]) end
  end
end
local mine = math.max(0, math.min(tonumber(ARGV[2]), tonumber(ARGV[3]) - others))
if mine == 0 then redis.call("hdel", KEYS[1], ARGV[1])
else
  redis.call("hset", KEYS[1], ARGV[1], string.format("%d %d", mine, now + ARGV[4]))
  redis.call("pexpire", KEYS[1], ARGV[4])
end
return mine`;
