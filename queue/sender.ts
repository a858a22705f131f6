import type { Queue } from "bullmq";
import { InferenceError } from "../protocol/error.ts";
import type { PendingRequest } from "../serving/scheduler.ts";
import type { Clock } from "../serving/clock.ts";
import type { DemandMeter } from "./demand-meter.ts";
import { type Envelopes, isClaimed, type Withdrawal } from "./envelope.ts";
import { type InferJobData, jobNames, jobOptions, jobPriorities } from "./jobs.ts";
import { queueAway } from "./queue-away.ts";
import type { Reply } from "./reply-frame.ts";
import { encodeRequest } from "./request-frame.ts";

/** An envelope is one job of one pool worker: more requests than this could keep others busy, too. */
const maxRequests = 64;
const maxBytes = 16 * 1024 * 1024;
/**
 * How long requests gather while other envelopes are out. A job costs several times what a request costs, and the
 * replies of a quick model are back by then; beside a slow one the delay is nothing.
 */
const gatherMilliseconds = 1;

/** A request on its way through Redis. */
export interface SentRequest {
  readonly pending: PendingRequest;
  /** Key of the version that is to run it. */
  readonly version: string;
  /** The request is answered, well or ill: nothing more will come. */
  done(): void;
  place?: Place;
  /** Nobody waits for it any more: it has its last reply, or was forgotten. */
  over: boolean;
  /** Replies it has had. */
  replies: number;
}

interface Place {
  readonly envelope: SentEnvelope;
  readonly index: number;
}

interface SentEnvelope {
  readonly id: string;
  readonly version: string;
  readonly tenant: string;
  readonly open: Map<number, SentRequest>;
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

/**
 * Puts requests into envelopes, envelopes into Redis, and replies to whom they are for. Requests for one version that
 * arrive in one turn of the event loop, or while others are being sent, share an envelope.
 */
export class Sender {
  readonly #options: SenderOptions;
  readonly #sent = new Map<string, SentEnvelope>();
  #gathering = new Map<string, SentRequest[]>();
  #gathered = 0;
  #timer: NodeJS.Timeout | undefined;
  #flushing = false;
  #count = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Takes over a request; every reply goes to its sink. */
  send(request: SentRequest): void {
    const { version, pending } = request;
    this.#options.meter.begin();
    const group = `${version}\0${pending.call.principal.tenant}`;
    const gathered = this.#gathering.get(group);
    if (gathered) gathered.push(request);
    else this.#gathering.set(group, [request]);
    this.#gathered++;
    if (this.#sent.size === 0 || this.#gathered >= maxRequests) this.#flushSoon();
    else this.#timer ??= setTimeout(() => this.#flush(), gatherMilliseconds);
  }

  /** Hands a reply to its request; one that was answered before is dropped, as is a reply that it has had before. */
  receive({ envelope: id, index, number, final, outcome, coldStart }: Reply): void {
    const request = this.#sent.get(id)?.open.get(index);
    if (!request || number < request.replies) return;
    request.replies = number + 1;
    if (coldStart) request.pending.call.coldStart = coldStart;
    if (final) this.forget(request);
    const { sink } = request.pending;
    if (outcome instanceof InferenceError) sink.fail(outcome);
    else sink.send(outcome, final);
  }

  /** Takes a request back, unless a pool worker may have read it. */
  async withdraw(request: SentRequest): Promise<Withdrawal> {
    const { place } = request;
    if (!place) {
      const gathered = [...this.#gathering.values()].find((group) => group.includes(request));
      if (gathered) {
        gathered.splice(gathered.indexOf(request), 1);
        this.#gathered--;
      }
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
      envelope.open.delete(index);
      if (envelope.open.size === 0) this.#sent.delete(envelope.id);
      if (this.#sent.size === 0 && this.#gathered > 0) this.#flushSoon();
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
      const requests = [...envelope.open.values()];
      for (const request of requests) delete request.place;
      this.#pack(requests);
    }
  }

  /** With all that arrives in the same turn of the event loop. */
  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushing = false;
    const groups = this.#gathering;
    this.#gathering = new Map();
    this.#gathered = 0;
    for (const group of groups.values()) this.#pack(group);
  }

  #pack(group: readonly SentRequest[]): void {
    let bytes = 0;
    let first = 0;
    for (const [i, { pending }] of group.entries()) {
      const size = pending.request.inputs.reduce((sum, input) => sum + input.bytes.byteLength, 0);
      if (i > first && (i - first >= maxRequests || bytes + size > maxBytes)) {
        this.#post(group.slice(first, i));
        [first, bytes] = [i, 0];
      }
      bytes += size;
    }
    if (group.length > first) this.#post(group.slice(first));
  }

  #post(requests: readonly SentRequest[]): void {
    const [first] = requests;
    if (!first) return;
    const envelope: SentEnvelope = {
      id: `${this.#options.gateway}-${(this.#count++).toString(36)}`,
      version: first.version,
      tenant: first.pending.call.principal.tenant,
      open: new Map(requests.entries()),
      written: false,
      missing: false,
    };
    for (const [index, request] of envelope.open) request.place = { envelope, index };
    this.#sent.set(envelope.id, envelope);
    this.#write(envelope, first.pending.request.modelName).then(
      () => (envelope.written = true),
      (cause: unknown) => this.#refuse(envelope, cause),
    );
  }

  async #write({ id, version, tenant, open }: SentEnvelope, model: string): Promise<void> {
    const { gateway, envelopes, queue, clock } = this.#options;
    const toEpoch = Date.now() - clock.now();
    const frames = new Map<number, Buffer>();
    for (const [index, { pending }] of open) {
      const receivedAt = pending.enqueuedAt + toEpoch;
      frames.set(index, encodeRequest({ request: pending.request, receivedAt }));
    }
    // Both go down the same connection, in this order: the envelope is there before its job can be seen.
    const written = envelopes.put(id, { tenant }, frames);
    if ([...frames.values()].some(isClaimed)) {
      await written;
      // That takes a while, and not everybody may have waited for it.
      const forgotten = [...frames.keys()].filter((index) => !open.has(index));
      for (const index of forgotten) await envelopes.withdraw(id, index);
      if (open.size === 0) return;
    }
    const data: InferJobData = { envelope: id, version, gateway, model, requests: open.size };
    const added = queue.add(jobNames.infer, data, {
      ...jobOptions,
      jobId: id,
      priority: jobPriorities.infer,
    });
    await Promise.all([written, added]);
  }

  #refuse(envelope: SentEnvelope, cause: unknown): void {
    const error = queueAway(cause);
    for (const request of envelope.open.values()) {
      this.forget(request);
      request.pending.sink.fail(error);
    }
  }
}
