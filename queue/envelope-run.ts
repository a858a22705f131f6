import { Call } from "../protocol/call.ts";
import { InferenceError } from "../protocol/error.ts";
import { validRequest } from "../protocol/valid-request.ts";
import type { Clock } from "../serving/clock.ts";
import type { RunningVersion } from "../serving/running-version.ts";
import type { ResponseSink } from "../serving/scheduler.ts";
import type { Envelope } from "./envelope.ts";
import type { Reply } from "./reply-frame.ts";
import { decodeRequest } from "./request-frame.ts";

/** Where the replies of one envelope go; resolves when one is in Redis. */
export type Answer = (reply: Reply) => Promise<void>;

/** The requests of one envelope while this pool worker has them. */
export class EnvelopeRun {
  readonly origin: string;
  readonly #envelope: Envelope;
  readonly #answer: Answer;
  readonly #calls = new Map<number, Call>();
  readonly #cancelled = new Set<number>();

  /** @param origin the envelope's id as its gateway knows it */
  constructor(origin: string, envelope: Envelope, answer: Answer) {
    this.origin = origin;
    this.#envelope = envelope;
    this.#answer = answer;
  }

  /** Hands all requests to the version's scheduler; resolves when each is answered and its replies are in Redis. */
  async run(version: RunningVersion, clock: Clock): Promise<void> {
    const { frames } = this.#envelope;
    await Promise.all([...frames].map(([index, frame]) => this.#run(index, frame, version, clock)));
  }

  /** Answers all requests with the reason that none of them can run. */
  async fail(cause: unknown): Promise<void> {
    const outcome = InferenceError.from(cause);
    const { origin: envelope } = this;
    const replies = [...this.#envelope.frames.keys()].map((index) =>
      this.#answer({ envelope, index, number: 0, final: true, outcome }),
    );
    await Promise.all(replies);
  }

  /** Nobody waits for the request any more. */
  cancel(index: number): void {
    this.#cancelled.add(index);
    this.#calls.get(index)?.cancel();
  }

  #run(index: number, frame: Buffer, version: RunningVersion, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      const written: Promise<void>[] = [];
      let number = 0;
      const answer = (reply: Pick<Reply, "final" | "outcome">): void => {
        written.push(this.#answer({ envelope: this.origin, index, number: number++, ...reply }));
        if (!reply.final) return;
        this.#calls.delete(index);
        resolve(all(written));
      };
      const sink: ResponseSink = {
        send: (outcome, final) => answer({ final, ...(outcome && { outcome }) }),
        fail: (outcome) => answer({ final: true, outcome }),
      };
      try {
        this.#enqueue(index, frame, { version, clock, sink });
      } catch (error) {
        sink.fail(InferenceError.from(error));
      }
    });
  }

  #enqueue(
    index: number,
    frame: Buffer,
    { version, clock, sink }: { version: RunningVersion; clock: Clock; sink: ResponseSink },
  ): void {
    const { request, receivedAt } = decodeRequest(frame, version.model.name);
    const valid = validRequest(version.model, request);
    const now = clock.now();
    const call = new Call({ name: "", tenant: this.#envelope.head.tenant }, now);
    this.#calls.set(index, call);
    if (this.#cancelled.has(index)) call.cancel();
    // It has waited since its gateway took it; a clock that is behind that gateway's must not make it younger than now.
    const enqueuedAt = Math.min(now, now - (Date.now() - receivedAt));
    version.scheduler.enqueue({ request: valid, call, sink, enqueuedAt });
  }
}

async function all(written: readonly Promise<void>[]): Promise<void> {
  await Promise.all(written);
}
