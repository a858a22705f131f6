import type { Demand } from "./demand.ts";
import type { PoolChannel } from "./pool-channel.ts";

/**
 * Counts what a gateway waits for in one pool and says it in Redis: at once when it begins to wait, which may have to
 * wake somebody, and every so often from then on.
 */
export class DemandMeter {
  readonly #gateway: string;
  readonly #demand: Demand;
  readonly #channel: PoolChannel;
  #waiting = 0;
  #since = 0;
  #said = false;

  constructor(gateway: string, demand: Demand, channel: PoolChannel) {
    this.#gateway = gateway;
    this.#demand = demand;
    this.#channel = channel;
  }

  get waiting(): number {
    return this.#waiting;
  }

  begin(): void {
    if (this.#waiting === 0) this.#since = Date.now();
    this.#waiting++;
    if (this.#said) return;
    this.#said = true;
    this.say()
      .then(() => this.#channel.publish({ type: "demand" }))
      .catch(() => {});
  }

  end(): void {
    this.#waiting--;
  }

  /** To be called every so often: what is not repeated counts as gone. */
  async say(): Promise<void> {
    if (!this.#said) return;
    const requests = this.#waiting;
    if (requests === 0) this.#said = false;
    await this.#demand.say(this.#gateway, { requests, since: this.#since }, Date.now());
  }
}
