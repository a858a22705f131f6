import { DrainRate } from "../../protocol/drain-rate.ts";
import type { Claim } from "./claim.ts";

/** Divides permits between processes. Neither method rejects. */
export interface PermitPool {
  /** Says how many this process wants to have from now on; gives how many it has. */
  hold(holder: InFlight, wanted: number): Promise<number>;
  /** Asks others to let go of what they do not use. */
  plead(holder: InFlight): void;
}

export interface InFlightOptions {
  readonly limit: number;
  /** Whose requests. */
  readonly key: string;
  /** Without one all permits are this process's. */
  readonly pool?: PermitPool | undefined;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** So much of a bound is taken for one process beyond what it needs. */
const part = 1 / 16;
/** Others have heard a plea, and let go, after the first of these times, or on a busy machine after the others. */
const pleaMilliseconds = [5, 15, 40];
/** After a plea in vain nobody is asked again for so long. */
const fullMilliseconds = 100;

/** Bounds how many requests of somebody are under way at a time; the bound may be shared with other processes. */
export class InFlight implements Claim {
  readonly limit: number;
  readonly key: string;
  readonly #pool: PermitPool | undefined;
  readonly #now: () => number;
  readonly #drain = new DrainRate();
  #used = 0;
  /** The most that were used since somebody looked. */
  #peak = 0;
  #held: number;
  #waiting = 0;
  #fullUntil = -Infinity;
  #asking: Promise<void> | undefined;

  constructor({ limit, key, pool, now }: InFlightOptions) {
    this.limit = limit;
    this.key = key;
    this.#pool = pool;
    this.#now = now;
    this.#held = pool ? 0 : limit;
  }

  get used(): number {
    return this.#used;
  }

  /** How many permits this process has. */
  get held(): number {
    return this.#held;
  }

  /** How many more may be under way, as far as this process knows. */
  get left(): number {
    const known = this.#now() < this.#fullUntil ? this.#held : this.limit;
    return Math.max(0, known - this.#used);
  }

  /** How many ended in a second lately. */
  get drainedPerSecond(): number {
    return this.#drain.perSecond(this.#now());
  }

  ready(count: number): boolean | Promise<void> {
    if (this.#used + count <= this.#held) return true;
    if (!this.#pool || this.#held >= this.limit || this.#now() < this.#fullUntil) return false;
    this.#waiting += count;
    this.#asking ??= this.#more(this.#pool);
    return this.#asking;
  }

  spend(count: number): void {
    this.#used += count;
    this.#peak = Math.max(this.#peak, this.#used);
  }

  release(): void {
    this.#used--;
    this.#drain.count(this.#now());
  }

  /** To be called every so often: keeps what was used lately, and lets go of the rest. @param anew says it again, too */
  async settle(anew: boolean): Promise<void> {
    const wanted = Math.max(this.#peak, this.#used);
    this.#peak = this.#used;
    if (wanted < this.#held || (anew && wanted > 0)) await this.#keep(wanted);
  }

  /** Lets go of all that is not used now. */
  async yield(): Promise<void> {
    if (this.#used < this.#held) await this.#keep(this.#used);
  }

  async #keep(wanted: number): Promise<void> {
    if (this.#asking) return;
    // From now on: what is being given back must not be used meanwhile.
    this.#held = Math.min(this.#held, wanted);
    const held = (await this.#pool?.hold(this, wanted)) ?? wanted;
    this.#held = Math.min(this.#held, held);
  }

  async #more(pool: PermitPool): Promise<void> {
    // For all who come in this turn.
    await Promise.resolve();
    await this.#ask(pool);
    if (this.#used >= this.#held) pool.plead(this);
    for (const milliseconds of pleaMilliseconds) {
      if (this.#used < this.#held) break;
      await new Promise((resolve) => setTimeout(resolve, milliseconds));
      await this.#ask(pool);
    }
    if (this.#used >= this.#held) this.#fullUntil = this.#now() + fullMilliseconds;
    this.#waiting = 0;
    this.#asking = undefined;
  }

  async #ask(pool: PermitPool): Promise<void> {
    const more = Math.max(this.#waiting, Math.ceil(this.limit * part));
    this.#held = await pool.hold(this, Math.min(this.limit, this.#used + more));
  }
}
