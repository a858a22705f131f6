import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";

/** What all processes of a pool know together of its virtual time. */
export interface LedgerPage {
  /** The virtual time. */
  readonly now: number;
  /** The virtual time that the first of all priorities stands for. */
  readonly base: number;
  /** The virtual finish of what tenants have sent last: of those with the latest, if there are many. */
  readonly finishes: ReadonlyMap<string, number>;
}

/** Where processes tell each other what they have sent and taken. */
export interface FairLedger {
  /**
   * @param now the virtual time as far as this process has seen
   * @param reach how far the time may go beyond the base before the base follows
   * @param spent items that this process has sent and not told of, by tenant
   */
  exchange(now: number, reach: number, spent: ReadonlyMap<string, number>): Promise<LedgerPage>;
}

/** Longer than anything waits; what is forgotten begins again at what the processes know. */
const keptMilliseconds = 7 * 24 * 3_600_000;

const mostTenants = 1000;

/** In one step, because all processes do it. What has ended before the time that it is now need not be remembered. */
const exchange = `
local said = redis.call("hmget", KEYS[1], "now", "base")
local now = math.max(tonumber(said[1] or 0), tonumber(ARGV[1]))
local base = tonumber(said[2] or now)
if now - base > tonumber(ARGV[2]) then base = now end
redis.call("hset", KEYS[1], "now", now, "base", base)
for i = 5, #ARGV, 2 do
  local before = tonumber(redis.call("zscore", KEYS[2], ARGV[i]) or 0)
  redis.call("zadd", KEYS[2], math.max(now, before) + tonumber(ARGV[i + 1]), ARGV[i])
end
redis.call("zremrangebyscore", KEYS[2], "-inf", now)
redis.call("pexpire", KEYS[1], ARGV[3])
redis.call("pexpire", KEYS[2], ARGV[3])
local latest = redis.call("zrevrange", KEYS[2], 0, ARGV[4] - 1, "withscores")
return { string.format("%.0f", now), string.format("%.0f", base), latest }`;

/** The ledger of one pool, in Redis. */
export function fairLedger(pool: string, commands: Redis): FairLedger {
  const keys = [names.virtualTime(pool), names.virtualFinishes(pool)];
  return {
    async exchange(seen, reach, spent) {
      const args = [seen, reach, keptMilliseconds, mostTenants, ...[...spent].flat()];
      const answer = await commands.eval(exchange, keys.length, ...keys, ...args);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the script returns
      const [now, base, latest] = answer as [string, string, string[]];
      const finishes = new Map<string, number>();
      for (let i = 0; i < latest.length; i += 2)
        finishes.set(latest[i] ?? "", Number(latest[i + 1]));
      return { now: Number(now), base: Number(base), finishes };
    },
  };
}
