import { setImmediate } from "node:timers/promises";
import { Job, type Queue } from "bullmq";
import type { Redis } from "../redis/connection.ts";
import { inOneWrite } from "../redis/one-write.ts";
import type { Clock } from "../serving/clock.ts";
import type { Envelopes, Withdrawal } from "./envelope.ts";
import { type InferJobData, jobNames, jobOptions, mostBundleBytes } from "./jobs.ts";
import { type EncodedRequests, encodeRequests } from "./request-frame.ts";
import { jobIdOf, type SentEnvelope } from "./sent-envelope.ts";

export interface OutboxOptions {
  readonly gateway: string;
  readonly commands: Redis;
  readonly envelopes: Envelopes;
  readonly queue: Queue<InferJobData>;
  readonly clock: Clock;
  /** The envelope is in Redis no more, and nobody has read it: what is left of it has to be sent again. */
  readonly onRemoved: (envelope: SentEnvelope) => void;
}

/** What came of taking a job out of the queue. */
type Removal = "removed" | "taken" | "gone";

/**
 * Brings the envelopes of a gateway into Redis, and what is taken back out of it. A small one travels in its job; to take
 * a request out of it the job is removed, which no pool worker can have read then.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  /** Those that travel in their jobs. */
  readonly #small = new WeakSet<SentEnvelope>();
  readonly #removals = new WeakMap<SentEnvelope, Promise<Removal>>();
  readonly #rewriting = new WeakSet<SentEnvelope>();

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Sends its commands before it returns, unless requests are large. */
  async put(envelope: SentEnvelope): Promise<void> {
    const { envelopes } = this.#options;
    const { id, line, requests } = envelope;
    const encoded = this.#encode(envelope);
    const isSmall = encoded.claimed.size === 0 && encoded.bundle.byteLength <= mostBundleBytes;
    if (isSmall && !line) {
      this.#small.add(envelope);
      await this.#add(envelope, { bundle: encoded.bundle.toString("base64") });
      return;
    }
    // Both go down the same connection, in this order: the envelope is there before its job can be seen.
    const written = envelopes.put(id, encoded, requests.length);
    if (encoded.claimed.size > 0) {
      await written;
      // That takes a while, and not everybody may have waited for it.
      for (const index of requests.keys()) {
        if (!requests[index]) await envelopes.withdraw(id, index);
      }
      if (envelope.open === 0) return;
    }
    const added = line ? line.push(this.#dataOf(envelope)) : this.#add(envelope);
    await Promise.all([written, added]);
  }

  /** Takes out one request, unless a pool worker may have read it. */
  async withdraw(envelope: SentEnvelope, index: number): Promise<Withdrawal> {
    const { envelopes, queue } = this.#options;
    const isSmall = this.#small.has(envelope);
    const removal = isSmall ? await this.#remove(envelope) : "gone";
    if (removal === "removed") return "withdrawn";
    // A pool worker that has to start a version first puts down what it has taken.
    const withdrawal = await envelopes.withdraw(envelope.id, index);
    if (withdrawal === "emptied") await queue.remove(jobIdOf(envelope));
    return withdrawal === "gone" ? removal : withdrawal;
  }

  /** Takes out a request that a pool worker may have read, so that none that takes the envelope over reads it again. */
  async drop(envelope: SentEnvelope, index: number): Promise<void> {
    const dropped = await this.#options.envelopes.drop(envelope.id, index);
    if (dropped !== "gone" || !this.#small.has(envelope) || this.#rewriting.has(envelope)) return;
    this.#rewriting.add(envelope);
    // With all that are dropped in the same turn.
    await setImmediate();
    this.#rewriting.delete(envelope);
    const job = new Job(this.#options.queue, jobNames.infer, {}, {}, jobIdOf(envelope));
    const bundle = this.#encode(envelope).bundle.toString("base64");
    // One that is over by now has no data any more.
    await job.updateData(this.#dataOf(envelope, { bundle })).catch(() => {});
  }

  /** Those that Redis has lost, or that are done. */
  async missing(envelopes: readonly SentEnvelope[]): Promise<ReadonlySet<SentEnvelope>> {
    const { queue } = this.#options;
    const missing = await this.#options.envelopes.missing(
      envelopes.map((one) => [one.id, this.#small.has(one) ? queue.toKey(jobIdOf(one)) : ""]),
    );
    return new Set(envelopes.filter(({ id }) => missing.has(id)));
  }

  #encode({ kind, requests }: SentEnvelope): EncodedRequests {
    const { clock } = this.#options;
    const toEpoch = Date.now() - clock.now();
    const sent = requests.flatMap((one, index) => {
      if (!one) return [];
      const { request, call, enqueuedAt } = one.pending;
      const trace = call.trace && { trace: call.trace.traceparent ?? "" };
      const callers = call.callers.length > 0 && { callers: call.callers };
      const receivedAt = enqueuedAt + toEpoch;
      return [[index, { request, receivedAt, ...trace, ...callers }] as const];
    });
    return encodeRequests({ tenant: kind.tenant }, sent);
  }

  #dataOf(envelope: SentEnvelope, more?: Pick<InferJobData, "bundle">): InferJobData {
    const { id, kind, model, open, finish } = envelope;
    const { gateway } = this.#options;
    return { envelope: id, version: kind.version, gateway, model, requests: open, finish, ...more };
  }

  async #add(envelope: SentEnvelope, more?: Pick<InferJobData, "bundle">): Promise<void> {
    const { priority } = envelope;
    const options = { ...jobOptions, jobId: jobIdOf(envelope), priority };
    await this.#options.queue.add(jobNames.infer, this.#dataOf(envelope, more), options);
  }

  /** All that take back a request of the envelope at the same time do it once. */
  #remove(envelope: SentEnvelope): Promise<Removal> {
    const known = this.#removals.get(envelope);
    if (known) return known;
    const removal = this.#removeJob(envelope).finally(() => this.#removals.delete(envelope));
    this.#removals.set(envelope, removal);
    return removal;
  }

  async #removeJob(envelope: SentEnvelope): Promise<Removal> {
    const { commands, queue, onRemoved } = this.#options;
    const id = jobIdOf(envelope);
    inOneWrite(commands);
    // BullMQ does not tell a job that it has removed from one that was not there.
    const [there, removed] = await Promise.all([
      commands.exists(queue.toKey(id)),
      queue.remove(id),
    ]);
    if (removed === 0) return "taken";
    if (there === 0) return "gone";
    this.#small.delete(envelope);
    onRemoved(envelope);
    return "removed";
  }
}
