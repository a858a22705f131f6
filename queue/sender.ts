import type { Queue } from "bullmq";
import { InferenceError } from "../protocol/error.ts";
import type { PendingRequest } from "../serving/scheduler.ts";
import type { Clock } from "../serving/clock.ts";
import type { DemandMeter } from "./demand-meter.ts";
import type { Envelopes, Withdrawal } from "./envelope.ts";
import { Gathering, maxRequests } from "./gathering.ts";
import { type InferJobData, jobNames, jobOptions, jobPriorities } from "./jobs.ts";
import { tellPoolTimes } from "./pool-trace.ts";
import { queueAway } from "./queue-away.ts";
import type { Reply } from "./reply-frame.ts";
import { encodeRequests, requestBytes } from "./request-frame.ts";

const maxBytes = 16 * 1024 * 1024;
/** Kinds of requests that are remembered without need. */
const maxGatherings = 1000;

/** A request on its way through Redis. */
export interface SentRequest {
  readonly pending: PendingRequest;
  /** Key of the version that is to run it. */
  readonly version: string;
  /** The request is answered, well or ill: nothing more will come. */
  done(): void;
  /** Where it goes when it must not go into the queue of all. */
  readonly line?: EnvelopeLine;
  /** Called instead of sending it again when Redis has lost it. */
  lost?(): void;
  /** Until it has a place. */
  gathering?: Gathering<SentRequest>;
  place?: Place;
  /** Nobody waits for it any more: it has its last reply, or was forgotten. */
  over: boolean;
  /** Replies it has had. */
  replies: number;
}

/** A line that one pool worker reads. */
export interface EnvelopeLine {
  /** Unlike that of any other line. */
  readonly name: string;
  push(data: InferJobData): Promise<void>;
}

interface Place {
  readonly envelope: SentEnvelope;
  readonly index: number;
}

interface SentEnvelope {
  readonly id: string;
  readonly version: string;
  readonly tenant: string;
  readonly gathering: Gathering<SentRequest>;
  /** By index; those that are over are missing. */
  readonly requests: (SentRequest | undefined)[];
  /** How many are not over. */
  open: number;
  written: boolean;
  /** It was not in Redis when last looked for: its replies are on their way, or it is lost. */
  missing: boolean;
}

export interface SenderOptions {
  readonly gateway: string;
  readonly envelopes: Envelopes;
  readonly queue: Queue<InferJobData>;
  readonly meter: DemandMeter;
  readonly clock: Clock;
}

/** Puts requests into envelopes, envelopes into Redis, and replies to whom they are for. */
export class Sender {
  readonly #options: SenderOptions;
  readonly #sent = new Map<string, SentEnvelope>();
  readonly #gatherings = new Map<string, Gathering<SentRequest>>();
  #count = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Takes over a request; every reply goes to its sink. */
  send(request: SentRequest): void {
    this.#options.meter.begin();
    request.gathering = this.#gatheringOf(request);
    request.gathering.add(request);
  }

  /** Those with the same version, line and tenant share envelopes. */
  #gatheringOf({ version, line, pending }: SentRequest): Gathering<SentRequest> {
    const kind = `${version}\0${line?.name ?? ""}\0${pending.call.principal.tenant}`;
    const known = this.#gatherings.get(kind);
    if (known) return known;
    if (this.#gatherings.size >= maxGatherings) this.#forgetIdle();
    const made = new Gathering<SentRequest>((requests) => this.#pack(requests, made));
    this.#gatherings.set(kind, made);
    return made;
  }

  #forgetIdle(): void {
    for (const [kind, gathering] of this.#gatherings) {
      if (gathering.isIdle) this.#gatherings.delete(kind);
    }
  }

  /**
   * Hands replies to their requests. Those to what was answered before are dropped, as are replies that a request has had
   * before.
   */
  receive(replies: readonly Reply[]): void {
    const answers = replies.flatMap((reply) => this.#accept(reply) ?? []);
    // What has waited for the end of others sets out first: it is worked on while these answers are written.
    setImmediate(() => answers.forEach(answer));
  }

  #accept(reply: Reply): Answer | undefined {
    const { envelope: id, index, number, final } = reply;
    const request = this.#sent.get(id)?.requests[index];
    if (!request || number < request.replies) return undefined;
    request.replies = number + 1;
    if (final) this.forget(request);
    return { request, reply };
  }

  /** Takes a request back, unless a pool worker may have read it. */
  async withdraw(request: SentRequest): Promise<Withdrawal> {
    const { gathering, place } = request;
    if (!place) {
      gathering?.remove(request);
      return "withdrawn";
    }
    const { envelopes, queue } = this.#options;
    const { id } = place.envelope;
    const withdrawal = await envelopes.withdraw(id, place.index);
    if (withdrawal === "emptied") await queue.remove(id);
    return withdrawal;
  }

  /** No pool worker that takes over the request's envelope is to run it again. */
  async drop({ place }: SentRequest): Promise<void> {
    if (place) await this.#options.envelopes.drop(place.envelope.id, place.index);
  }

  /** Nothing more is expected for the request. */
  forget(request: SentRequest): void {
    const { place } = request;
    request.over = true;
    if (place) {
      const { envelope, index } = place;
      envelope.requests[index] = undefined;
      envelope.open--;
      if (envelope.open === 0) this.#sent.delete(envelope.id);
      envelope.gathering.ended();
    }
    this.#options.meter.end();
    request.done();
  }

  /**
   * Sends again what Redis has lost: unanswered requests whose envelope is gone. To be called every so often, with time
   * in between for replies to come: an envelope is lost when it is missed twice.
   */
  async resend(): Promise<void> {
    const written = [...this.#sent.values()].filter((envelope) => envelope.written);
    if (written.length === 0) return;
    const missing = new Set(await this.#options.envelopes.missing(written.map(({ id }) => id)));
    for (const envelope of written) {
      const lost = envelope.missing && missing.has(envelope.id);
      envelope.missing = missing.has(envelope.id);
      if (!lost || !this.#sent.delete(envelope.id)) continue;
      for (const request of openOf(envelope)) this.#again(request, envelope);
    }
  }

  #again(request: SentRequest, { gathering }: SentEnvelope): void {
    delete request.place;
    gathering.ended();
    if (request.lost) request.lost();
    else gathering.add(request);
  }

  #pack(requests: readonly SentRequest[], gathering: Gathering<SentRequest>): void {
    let bytes = 0;
    let first = 0;
    for (const [i, { pending }] of requests.entries()) {
      const size = requestBytes(pending.request);
      if (i > first && (i - first >= maxRequests || bytes + size > maxBytes)) {
        this.#post(requests.slice(first, i), gathering);
        [first, bytes] = [i, 0];
      }
      bytes += size;
    }
    this.#post(requests.slice(first), gathering);
  }

  #post(requests: SentRequest[], gathering: Gathering<SentRequest>): void {
    const [first] = requests;
    if (!first) return;
    const envelope: SentEnvelope = {
      id: `${this.#options.gateway}-${(this.#count++).toString(36)}`,
      version: first.version,
      tenant: first.pending.call.principal.tenant,
      gathering,
      requests,
      open: requests.length,
      written: false,
      missing: false,
    };
    for (const [index, request] of requests.entries()) {
      request.place = { envelope, index };
      gathering.began();
    }
    this.#sent.set(envelope.id, envelope);
    this.#write(envelope, first).then(
      () => (envelope.written = true),
      (cause: unknown) => this.#refuse(envelope, cause),
    );
  }

  /** @param first of its requests, which all go the same way */
  async #write(envelope: SentEnvelope, { line, pending }: SentRequest): Promise<void> {
    const { id, version, tenant } = envelope;
    const model = pending.request.modelName;
    const { gateway, envelopes, queue, clock } = this.#options;
    const toEpoch = Date.now() - clock.now();
    const requests = openOf(envelope).map(({ pending: { request, call, enqueuedAt } }, index) => {
      const trace = call.trace && { trace: call.trace.traceparent ?? "" };
      return [index, { request, receivedAt: enqueuedAt + toEpoch, ...trace }] as const;
    });
    const encoded = encodeRequests({ tenant }, requests);
    // Both go down the same connection, in this order: the envelope is there before its job can be seen.
    const written = envelopes.put(id, encoded, requests.length);
    if (encoded.claimed.size > 0) {
      await written;
      // That takes a while, and not everybody may have waited for it.
      for (const [index] of requests) {
        if (!envelope.requests[index]) await envelopes.withdraw(id, index);
      }
      if (envelope.open === 0) return;
    }
    const data: InferJobData = { envelope: id, version, gateway, model, requests: envelope.open };
    const options = { ...jobOptions, jobId: id, priority: jobPriorities.infer };
    const added = line ? line.push(data) : queue.add(jobNames.infer, data, options);
    await Promise.all([written, added]);
  }

  #refuse(envelope: SentEnvelope, cause: unknown): void {
    const error = queueAway(cause);
    for (const request of openOf(envelope)) {
      this.forget(request);
      request.pending.sink.fail(error);
    }
  }
}

function openOf({ requests }: SentEnvelope): SentRequest[] {
  return requests.filter((request) => request !== undefined);
}

/** A reply on its last steps. */
interface Answer {
  readonly request: SentRequest;
  readonly reply: Reply;
}

function answer({ request, reply }: Answer): void {
  const { final, outcome, coldStart, times } = reply;
  // It was cancelled just now: nothing that came later has ended it.
  if (request.over && !final && reply.number + 1 === request.replies) return;
  const { sink, call, enqueuedAt } = request.pending;
  if (coldStart) {
    call.coldStart = coldStart;
    call.trace?.startedCold(coldStart);
  }
  if (times && call.trace) tellPoolTimes(call.trace, times, enqueuedAt, performance.now());
  if (outcome instanceof InferenceError) sink.fail(outcome);
  else sink.send(outcome, final);
}
