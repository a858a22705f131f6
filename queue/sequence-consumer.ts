import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { InferJobData } from "./jobs.ts";
import type { LivingGateways } from "./living-gateways.ts";
import { SequenceFences } from "./sequence-fence.ts";
import { SequenceLine, type SequenceLineOptions } from "./sequence-line.ts";

export interface SequenceConsumerOptions extends SequenceLineOptions {
  readonly gateways: LivingGateways;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Redis was away in the middle of it. */
const retryMilliseconds = 200;
const lookMilliseconds = 50;

/** A pool worker's side of sequences: takes what only this one can run, and stays for a while for what is open. */
export class SequenceConsumer {
  readonly #options: SequenceConsumerOptions;
  readonly #fences: SequenceFences;
  readonly #line: SequenceLine;
  readonly #inHand = new Set<Promise<void>>();
  /** Through which sequences came. */
  readonly #gateways = new Set<string>();

  /** @param run of the envelope that is named; it is called again when it rejects */
  constructor(options: SequenceConsumerOptions, run: (data: InferJobData) => Promise<void>) {
    this.#options = options;
    this.#fences = new SequenceFences(options.clock);
    this.#line = new SequenceLine(options, (data) => {
      this.#gateways.add(data.gateway);
      const over = this.#untilRun(() => run(data)).finally(() => this.#inHand.delete(over));
      this.#inHand.add(over);
    });
  }

  /** Sequences that are open here, whose next requests can run nowhere else. */
  get open(): number {
    return this.#fences.open;
  }

  /** The version as requests out of the queue are to be given to it. */
  guarded(version: CountedVersion): CountedVersion {
    return this.#fences.guarded(version);
  }

  /** Resolves when what it has is answered. @param drainMilliseconds how long it stays for open sequences at most */
  async close(drainMilliseconds: number): Promise<void> {
    const until = this.#options.clock.now() + drainMilliseconds;
    while (this.open > 0 && this.#options.clock.now() < until && (await this.#isWanted()))
      await sleep(lookMilliseconds);
    await this.#line.close();
    await Promise.all(this.#inHand);
  }

  /** No other pool worker can do it: it is tried for as long as this one takes anything. */
  async #untilRun(run: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await run();
        return;
      } catch (err) {
        this.#options.log.verbose(1, "sequences", { err });
        if (this.#line.closed) return;
        await sleep(retryMilliseconds);
      }
    }
  }

  /** Somebody may send what follows. */
  async #isWanted(): Promise<boolean> {
    const { gateways, clock } = this.#options;
    for (const gateway of this.#gateways) {
      if (await gateways.lives(gateway, clock.now()).catch(() => true)) return true;
      this.#gateways.delete(gateway);
    }
    return false;
  }
}
