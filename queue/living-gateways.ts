import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";

/** A gateway that has not said for so long that it lives is dead. */
export const gatewayLeaseMilliseconds = 10_000;
const trustedMilliseconds = 1000;

/** Knows which gateways still wait for answers, so that nobody runs requests for one that died. */
export class LivingGateways {
  readonly #commands: Redis;
  readonly #seen = new Map<string, number>();

  constructor(commands: Redis) {
    this.#commands = commands;
  }

  /** @param now a monotonic time in milliseconds */
  async lives(gateway: string, now: number): Promise<boolean> {
    const seen = this.#seen.get(gateway);
    if (seen !== undefined && now - seen < trustedMilliseconds) return true;
    const lives = (await this.#commands.exists(names.gateway(gateway))) === 1;
    if (lives) this.#seen.set(gateway, now);
    else this.#seen.delete(gateway);
    return lives;
  }
}
