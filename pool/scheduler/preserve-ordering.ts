import type { InferenceError } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { RunRequests } from "./run-requests.ts";
import type { ResponseSink } from "../../serving/scheduler.ts";

/**
 * The same runs, but answering in the order in which they began: what a fast instance has ready waits until the slow
 * ones before it are done. The scheduler hands over work in the order of arrival.
 */
export function preserveOrdering(run: RunRequests): RunRequests {
  // Resolves to nothing when every run begun so far has answered, so that none keeps the memory of those before it.
  let tail: Promise<void> = Promise.resolve();
  return (instance, requests) => {
    const held = requests.map((pending) => ({ ...pending, sink: new HeldSink(pending.sink) }));
    tail = answerAfter(tail, run(instance, held), held);
    return tail;
  };
}

async function answerAfter(
  earlier: Promise<void>,
  running: Promise<void>,
  held: readonly { readonly sink: HeldSink }[],
): Promise<void> {
  await earlier;
  for (const { sink } of held) sink.release();
  await running;
}

/** Keeps answers back until it is released, and passes later ones on. */
class HeldSink implements ResponseSink {
  readonly #sink: ResponseSink;
  #answers: (() => void)[] | undefined = [];

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  get room(): Promise<void> | undefined {
    return this.#sink.room;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    this.#answer(() => this.#sink.send(response, final));
  }

  fail(error: InferenceError): void {
    this.#answer(() => this.#sink.fail(error));
  }

  release(): void {
    const answers = this.#answers ?? [];
    this.#answers = undefined;
    for (const answer of answers) answer();
  }

  #answer(answer: () => void): void {
    if (this.#answers) this.#answers.push(answer);
    else answer();
  }
}
