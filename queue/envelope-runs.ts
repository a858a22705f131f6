import { InferenceError } from "../protocol/error.ts";
import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { ColdStarts } from "./cold-start.ts";
import type { Envelope } from "./envelope.ts";
import { type Answer, EnvelopeRun } from "./envelope-run.ts";
import { hearClients } from "./hear-clients.ts";
import { type InferJobData, stallsBeforeApart } from "./jobs.ts";
import { killed } from "./killed.ts";
import type { PoolChannel } from "./pool-channel.ts";
import type { PoolCounters } from "./pool-counters.ts";
import type { TakenJob } from "./taken-requests.ts";

export interface EnvelopeRunsOptions {
  readonly channel: PoolChannel;
  /** The version of a key, started if it has to be. */
  readonly versions: (key: string) => Promise<CountedVersion>;
  /** The version as requests out of the queue are to be given to it. */
  readonly guarded: (version: CountedVersion) => CountedVersion;
  readonly counters: PoolCounters;
  readonly coldStarts: ColdStarts;
  readonly clock: Clock;
}

/** Where the requests of an envelope come from, and where their replies go. */
export interface EnvelopeSource {
  /** Its id. */
  readonly envelope: string;
  readonly model: string;
  readonly answer: Answer;
  readonly taken?: TakenJob | undefined;
  /** True while the gateway lives that tells what its clients have read; without it nobody tells. */
  readonly isWaitedFor?: () => Promise<boolean>;
}

/** All that a pool worker runs out of the queue, whatever brought it. */
export class EnvelopeRuns {
  readonly #options: EnvelopeRunsOptions;
  readonly #runs = new Set<EnvelopeRun>();
  readonly #stopHearing: () => void;
  #inflight = 0;

  constructor(options: EnvelopeRunsOptions) {
    this.#options = options;
    this.#stopHearing = hearClients(options.channel, this.#runs);
  }

  /** Requests in hand. */
  get inflight(): number {
    return this.#inflight;
  }

  /** To be called when the last one is over. */
  close(): void {
    this.#stopHearing();
  }

  /** Has this process told who waits no longer, from the moment it begins until its work is done. */
  async begin(source: EnvelopeSource, work: (run: EnvelopeRun) => Promise<void>): Promise<void> {
    const run = this.#runOf(source);
    this.#runs.add(run);
    try {
      await work(run);
    } finally {
      this.#runs.delete(run);
    }
  }

  /** The version that is to run a job's requests, or why none can. */
  version(
    { version, model }: Pick<InferJobData, "version" | "model">,
    stalls: number,
  ): Promise<CountedVersion | InferenceError> {
    if (stalls >= stallsBeforeApart) return Promise.resolve(killed(model));
    return this.#options.versions(version).catch((error: unknown) => InferenceError.from(error));
  }

  /** Resolves when all requests of the envelope are answered. */
  async answer(
    run: EnvelopeRun,
    envelope: Envelope,
    version: CountedVersion | InferenceError,
  ): Promise<void> {
    const { guarded, clock } = this.#options;
    const { size } = envelope.requests;
    this.#inflight += size;
    if (version instanceof InferenceError) await run.fail(envelope, version);
    else await run.run(envelope, guarded(version), clock);
    this.#inflight -= size;
  }

  /** Requests have been taken. @param stalls how often their job has lost its pool worker */
  count(requests: number, stalls: number): void {
    const { counters } = this.#options;
    counters.add("queue_envelopes_total");
    counters.observe("queue_requests_per_envelope", [], requests);
    if (stalls > 0) counters.add("queue_retries_total", [], requests);
  }

  #runOf({ envelope, model, answer, taken, isWaitedFor }: EnvelopeSource): EnvelopeRun {
    const { counters, coldStarts } = this.#options;
    const waited = counters.histogram("queue_wait_seconds", [model]);
    const observer = {
      waited: (milliseconds: number) => waited(milliseconds / 1000),
      coldStart: coldStarts.answered.bind(coldStarts, model),
      answered: () => taken?.answered(),
    };
    return new EnvelopeRun(envelope, answer, observer, isWaitedFor);
  }
}
