import { Call } from "../protocol/call.ts";
import type { ColdStartMarks } from "../protocol/cold-start.ts";
import { InferenceError } from "../protocol/error.ts";
import { validRequest } from "../protocol/valid-request.ts";
import type { Clock } from "../serving/clock.ts";
import type { CountedVersion } from "../serving/running-version.ts";
import type { ResponseSink } from "../serving/scheduler.ts";
import type { Envelope } from "./envelope.ts";
import type { Reply } from "./reply-frame.ts";
import { decodeRequest, type SentRequest } from "./request-frame.ts";

/**
 * Where the replies of one envelope go; resolves when one is in Redis.
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
}

/** The requests of one envelope while this pool worker has them. */
export class EnvelopeRun {
  readonly envelope: string;
  readonly #answer: Answer;
  readonly #observer: EnvelopeObserver;
  readonly #calls = new Map<number, Call>();
  readonly #cancelled = new Set<number>();

  /** @param envelope its id */
  constructor(envelope: string, answer: Answer, observer: EnvelopeObserver) {
    this.envelope = envelope;
    this.#answer = answer;
    this.#observer = observer;
  }

  /** Hands all requests to the version's scheduler; resolves when each is answered and its replies are in Redis. */
  async run({ head, frames }: Envelope, version: CountedVersion, clock: Clock): Promise<void> {
    const { tenant } = head;
    const runs = [...frames].map(([index, frame]) =>
      this.#run(index, frame, { version, clock, tenant }),
    );
    await Promise.all(runs);
  }

  /** Answers all requests with the reason that none of them can run. */
  async fail({ frames }: Envelope, outcome: InferenceError): Promise<void> {
    const { envelope } = this;
    const replies = [...frames.keys()].map((index) =>
      this.#answer({ envelope, index, number: 0, final: true, outcome }),
    );
    await Promise.all(replies);
  }

  /** Nobody waits for the request any more. */
  cancel(index: number): void {
    this.#cancelled.add(index);
    this.#calls.get(index)?.cancel();
  }

  #run(index: number, frame: Buffer, context: RunContext): Promise<void> {
    return new Promise((resolve) => {
      const written: Promise<void>[] = [];
      let number = 0;
      let receivedAt = Infinity;
      const answer = (outcome: Pick<Reply, "final" | "outcome">): void => {
        const reply = { envelope: this.envelope, index, number: number++, ...outcome };
        const coldStart = this.#coldStart(context.version, reply.number, receivedAt);
        written.push(this.#answer(coldStart ? { ...reply, coldStart } : reply, context.version));
        if (!outcome.final) return;
        this.#calls.delete(index);
        resolve(all(written));
      };
      const sink: ResponseSink = {
        send: (outcome, final) => answer({ final, ...(outcome && { outcome }) }),
        fail: (outcome) => answer({ final: true, outcome }),
      };
      try {
        const sent = decodeRequest(frame, context.version.model.name);
        receivedAt = sent.receivedAt;
        this.#enqueue(index, sent, { ...context, sink });
      } catch (error) {
        sink.fail(InferenceError.from(error));
      }
    });
  }

  #enqueue(
    index: number,
    { request, receivedAt }: SentRequest,
    { version, clock, tenant, sink }: RunContext & { readonly sink: ResponseSink },
  ): void {
    const valid = validRequest(version.model, request);
    const now = clock.now();
    const call = new Call({ name: "", tenant }, now);
    this.#calls.set(index, call);
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

async function all(written: readonly Promise<void>[]): Promise<void> {
  await Promise.all(written);
}
