import { Call } from "../protocol/call.ts";
import type { ColdStartMarks } from "../protocol/cold-start.ts";
import { InferenceError } from "../protocol/error.ts";
import { validRequest } from "../protocol/valid-request.ts";
import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { ResponseSink } from "../serving/scheduler.ts";
import type { Envelope } from "./envelope.ts";
import { PoolTrace } from "./pool-trace.ts";
import { responseBytes } from "./read-receipt.ts";
import { ReaderCredit } from "./reader-credit.ts";
import type { Reply } from "./reply-frame.ts";
import type { SentRequest } from "./request-frame.ts";

/**
 * Where the replies of one envelope go; resolves when one is in Redis before all that is sent there from then on.
 *
 * @param version the one that has answered, if one has
 */
export type Answer = (reply: Reply, version?: CountedVersion) => Promise<void>;

/** Told of what the requests have gone through. */
export interface EnvelopeObserver {
  /** The version's scheduler has a request, so long after its gateway took it. */
  waited(milliseconds: number): void;
  /** A request that came before its version was ready is answered. @param receivedAt milliseconds since the epoch */
  coldStart(marks: ColdStartMarks, receivedAt: number): void;
  /** A request has its last reply. */
  answered(): void;
}

/** The requests of one envelope while this pool worker has them. */
export class EnvelopeRun {
  readonly envelope: string;
  readonly #answer: Answer;
  readonly #observer: EnvelopeObserver;
  readonly #isWaitedFor: (() => Promise<boolean>) | undefined;
  /** Of those that may have many replies. */
  readonly #credits: (ReaderCredit | undefined)[] = [];
  readonly #calls: (Call | undefined)[] = [];
  readonly #cancelled = new Set<number>();
  /** Replies of about the same time share one. */
  readonly #written = new Set<Promise<void>>();
  #left = 0;
  #over = (): void => {};

  /**
   * @param envelope its id
   * @param isWaitedFor true while the gateway lives that tells what its clients have read; without it nobody tells
   */
  constructor(
    envelope: string,
    answer: Answer,
    observer: EnvelopeObserver,
    isWaitedFor?: () => Promise<boolean>,
  ) {
    this.envelope = envelope;
    this.#answer = answer;
    this.#observer = observer;
    this.#isWaitedFor = isWaitedFor;
  }

  /** Hands all requests to the version's scheduler; resolves when each is answered. */
  async run({ head, requests }: Envelope, version: CountedVersion, clock: Clock): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    this.#over = resolve;
    this.#left = requests.size;
    const context = { version, clock, tenant: head.tenant };
    for (const [index, sent] of requests) this.#run(index, sent, context);
    if (this.#left > 0) await over;
    await Promise.all(this.#written);
  }

  /** Answers all requests with the reason that none of them can run. */
  async fail({ requests }: Envelope, outcome: InferenceError): Promise<void> {
    const { envelope } = this;
    for (const index of requests.keys()) {
      this.#write({ envelope, index, number: 0, final: true, outcome });
    }
    await Promise.all(this.#written);
  }

  /** Nobody waits for the request any more. */
  cancel(index: number): void {
    this.#cancelled.add(index);
    this.#calls[index]?.cancel();
    this.#credits[index]?.end();
  }

  /** The client has read the request's replies up to and with that number. */
  read(index: number, number: number): void {
    this.#credits[index]?.read(number);
  }

  #run(index: number, sent: SentRequest, context: RunContext): void {
    const trace = sent.trace === undefined ? undefined : new PoolTrace(sent.trace);
    const credit = this.#creditOf(index, context);
    this.#credits[index] = credit;
    let number = 0;
    let isOver = false;
    const answer = (outcome: Pick<Reply, "final" | "outcome">): void => {
      const times = trace && { times: trace.times() };
      const reply = { envelope: this.envelope, index, number: number++, ...outcome, ...times };
      const coldStart = this.#coldStart(context.version, reply.number, sent.receivedAt);
      this.#write(coldStart ? { ...reply, coldStart } : reply, context.version);
      if (!outcome.final || isOver) return;
      isOver = true;
      this.#observer.answered();
      this.#calls[index] = this.#credits[index] = undefined;
      credit?.end();
      this.#left--;
      if (this.#left === 0) this.#over();
    };
    const sink: ResponseSink = {
      send: (outcome, final) => {
        answer({ final, ...(outcome && { outcome }) });
        if (outcome && !final) credit?.sent(number - 1, responseBytes(outcome));
      },
      get room() {
        return credit?.room;
      },
      fail: (outcome) => answer({ final: true, outcome }),
    };
    try {
      this.#enqueue(index, sent, { ...context, sink, trace });
    } catch (error) {
      sink.fail(InferenceError.from(error));
    }
  }

  #creditOf(index: number, { version, clock }: RunContext): ReaderCredit | undefined {
    const isWaitedFor = this.#isWaitedFor;
    if (!isWaitedFor || !version.model.config.modelTransactionPolicy?.decoupled) return undefined;
    return new ReaderCredit({ clock, isWaitedFor, onGone: () => this.cancel(index) });
  }

  #write(reply: Reply, version?: CountedVersion): void {
    const written = this.#answer(reply, version);
    if (this.#written.has(written)) return;
    this.#written.add(written);
    void written.then(() => this.#written.delete(written));
  }

  #enqueue(
    index: number,
    { request, receivedAt, callers }: SentRequest,
    { version, clock, tenant, sink, trace }: RequestContext,
  ): void {
    const valid = validRequest(version.model, request);
    const now = clock.now();
    const call = new Call({ name: "", tenant }, now, trace?.traceparent);
    call.trace = trace;
    if (callers) call.callers = callers;
    this.#calls[index] = call;
    if (this.#cancelled.has(index)) call.cancel();
    // It has waited since its gateway took it; a clock that is behind that gateway's must not make it younger than now.
    const enqueuedAt = Math.min(now, now - (Date.now() - receivedAt));
    this.#observer.waited(now - enqueuedAt);
    version.scheduler.enqueue({ request: valid, call, sink, enqueuedAt });
  }

  /** With the first reply to a request that came before the version could answer. */
  #coldStart(
    { coldStart }: CountedVersion,
    number: number,
    receivedAt: number,
  ): ColdStartMarks | undefined {
    if (!coldStart || number > 0 || receivedAt >= coldStart.readyAt) return undefined;
    this.#observer.coldStart(coldStart, receivedAt);
    return coldStart;
  }
}

interface RunContext {
  readonly version: CountedVersion;
  readonly clock: Clock;
  readonly tenant: string;
}

interface RequestContext extends RunContext {
  readonly sink: ResponseSink;
  readonly trace: PoolTrace | undefined;
}
