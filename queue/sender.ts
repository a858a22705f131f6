import type { Queue } from "bullmq";
import { InferenceError } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";
import type { Clock } from "../serving/clock.ts";
import type { DemandMeter } from "./demand-meter.ts";
import type { Envelopes, Withdrawal } from "./envelope.ts";
import { Gathering } from "./gathering.ts";
import type { FairShares } from "./fair-shares.ts";
import type { InferJobData } from "./jobs.ts";
import { Outbox } from "./outbox.ts";
import { tellPoolTimes } from "./pool-trace.ts";
import { queueAway } from "./queue-away.ts";
import type { Reply } from "./reply-frame.ts";
import { requestBytes } from "./request-frame.ts";
import {
  itemsOf,
  jobIdOf,
  openOf,
  type RequestKind,
  type SentEnvelope,
  type SentRequest,
} from "./sent-envelope.ts";
import { setPriorities } from "./set-priorities.ts";
import { tenantMark } from "./tenant-mark.ts";

const maxBytes = 16 * 1024 * 1024;
/** Kinds of requests that are remembered without need. */
const maxKinds = 1000;

export interface SenderOptions {
  readonly gateway: string;
  readonly commands: Redis;
  readonly envelopes: Envelopes;
  readonly queue: Queue<InferJobData>;
  readonly shares: FairShares;
  readonly meter: DemandMeter;
  readonly clock: Clock;
  /** At most. */
  readonly requestsPerEnvelope: number;
}

/** Puts requests into envelopes, envelopes into Redis, and replies to whom they are for. */
export class Sender {
  readonly #options: SenderOptions;
  readonly #outbox: Outbox;
  readonly #sent = new Map<string, SentEnvelope>();
  readonly #kinds = new Map<string, RequestKind>();
  #count = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#outbox = new Outbox({
      ...options,
      onRemoved: (envelope) => this.#sendRest(envelope),
    });
    options.shares.onRebase(() => void this.#setPriorities());
  }

  /** Takes over a request; every reply goes to its sink. */
  send(request: SentRequest): void {
    this.#options.meter.begin();
    request.kind = this.#kindOf(request);
    request.kind.gathering.add(request);
  }

  /** Those with the same version, line and tenant share envelopes. */
  #kindOf({ version, line, pending: { call } }: SentRequest): RequestKind {
    const { tenant } = call.principal;
    const key = `${version}\0${line?.name ?? ""}\0${tenant}`;
    const known = this.#kinds.get(key);
    if (known) return known;
    if (this.#kinds.size >= maxKinds) this.#forgetIdle();
    const gathering = new Gathering<SentRequest>((requests) => this.#pack(requests, made));
    const made = { version, tenant, mark: tenantMark(tenant), gathering };
    this.#kinds.set(key, made);
    return made;
  }

  #forgetIdle(): void {
    for (const [key, { gathering }] of this.#kinds) if (gathering.isIdle) this.#kinds.delete(key);
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
    const { kind, place } = request;
    if (!place) {
      kind?.gathering.remove(request);
      return "withdrawn";
    }
    const { envelope, index } = place;
    request.leaving = true;
    const withdrawal = await this.#outbox.withdraw(envelope, index);
    request.leaving = withdrawal === "withdrawn" || withdrawal === "emptied";
    if (request.leaving)
      this.#options.shares.giveBack(envelope.kind.tenant, itemsOf(request.pending.request));
    return withdrawal;
  }

  /** No pool worker that takes over the request's envelope is to run it again. */
  async drop({ place }: SentRequest): Promise<void> {
    if (place) await this.#outbox.drop(place.envelope, place.index);
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
      envelope.kind.gathering.ended();
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
    const missing = await this.#outbox.missing(written);
    for (const envelope of written) {
      const lost = envelope.missing && missing.has(envelope);
      envelope.missing = missing.has(envelope);
      if (!lost || !this.#sent.delete(envelope.id)) continue;
      for (const request of openOf(envelope)) this.#again(request, envelope);
    }
  }

  #again(request: SentRequest, { kind }: SentEnvelope): void {
    delete request.place;
    kind.gathering.ended();
    if (request.lost) request.lost();
    else kind.gathering.add(request);
  }

  /** Of an envelope that has lost its place because one of its requests was taken back: the others keep their turn. */
  #sendRest(envelope: SentEnvelope): void {
    this.#sent.delete(envelope.id);
    const rest = openOf(envelope).filter(({ leaving }) => leaving !== true);
    this.#post(rest, envelope.kind, envelope.finish);
    for (const _ of rest) envelope.kind.gathering.ended();
  }

  /** Those of jobs that wait have become others. */
  async #setPriorities(): Promise<void> {
    const { shares, queue } = this.#options;
    const changed: [string, number][] = [];
    for (const envelope of this.#sent.values()) {
      const priority = shares.priority(envelope.finish);
      if (envelope.line || priority === envelope.priority) continue;
      envelope.priority = priority;
      changed.push([jobIdOf(envelope), priority]);
    }
    await setPriorities(queue, changed);
  }

  #pack(requests: readonly SentRequest[], kind: RequestKind): void {
    const { requestsPerEnvelope } = this.#options;
    let bytes = 0;
    let first = 0;
    for (const [i, { pending }] of requests.entries()) {
      const size = requestBytes(pending.request);
      if (i > first && (i - first >= requestsPerEnvelope || bytes + size > maxBytes)) {
        this.#post(requests.slice(first, i), kind);
        [first, bytes] = [i, 0];
      }
      bytes += size;
    }
    this.#post(requests.slice(first), kind);
  }

  /** @param turn the virtual finish time of those that have one */
  #post(requests: SentRequest[], kind: RequestKind, turn?: number): void {
    const [first] = requests;
    if (!first) return;
    const { gateway, shares } = this.#options;
    const items = requests.reduce((sum, request) => sum + itemsOf(request.pending.request), 0);
    const finish = turn ?? shares.send(kind.tenant, items);
    const envelope: SentEnvelope = {
      id: `${gateway}-${(this.#count++).toString(36)}`,
      kind,
      model: first.pending.request.modelName,
      line: first.line,
      finish,
      priority: shares.priority(finish),
      requests,
      open: requests.length,
      written: false,
      missing: false,
    };
    for (const [index, request] of requests.entries()) {
      request.place = { envelope, index };
      kind.gathering.began();
    }
    this.#sent.set(envelope.id, envelope);
    this.#outbox.put(envelope).then(
      () => (envelope.written = true),
      (cause: unknown) => this.#refuse(envelope, cause),
    );
  }

  #refuse(envelope: SentEnvelope, cause: unknown): void {
    const error = queueAway(cause);
    for (const request of openOf(envelope)) {
      this.forget(request);
      request.pending.sink.fail(error);
    }
  }
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
