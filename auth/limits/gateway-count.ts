import type { Redis } from "../../redis/connection.ts";

const key = "tidepool:limits:gateways";
const sayMilliseconds = 1000;
/** Who has not said for so long that it lives is gone. */
const goneMilliseconds = 5000;

/** Counts the gateways that share a Redis, for the time when it is away and they cannot ask each other. */
export class GatewayCount {
  readonly #commands: Redis;
  readonly #gateway: string;
  readonly #timer: NodeJS.Timeout;
  #count = 1;

  /** @param gateway unlike that of any other process */
  constructor(commands: Redis, gateway: string) {
    this.#commands = commands;
    this.#gateway = gateway;
    this.#timer = setInterval(() => void this.say(), sayMilliseconds).unref();
    void this.say();
  }

  /** As it was seen last, with this one. */
  get count(): number {
    return this.#count;
  }

  /** Says that this one is there, and looks who else is; never rejects. */
  async say(): Promise<void> {
    const given = [this.#gateway, goneMilliseconds];
    const count = await this.#commands.eval(sayScript, 1, key, ...given).catch(() => undefined);
    if (typeof count === "number") this.#count = Math.max(1, count);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

const sayScript = `
local time = redis.call("time")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("zadd", KEYS[1], now, ARGV[1])
redis.call("zremrangebyscore", KEYS[1], "-inf", now - ARGV[2])
redis.call("pexpire", KEYS[1], ARGV[2])
return redis.call("zcard", KEYS[1])`;
