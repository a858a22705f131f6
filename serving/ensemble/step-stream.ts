import type { InferenceError } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import type { ResponseSink } from "../scheduler.ts";

/** Responses that are on their way through the steps behind theirs, unless the config says how many. */
const usualBranches = 64;

export interface StepStreamOptions {
  /** Sends a response of the step through those behind it; the sink gets what comes of it. */
  readonly goOn: (response: InferenceResponse, sink: ResponseSink) => void;
  /** Where all of that goes in the end. */
  readonly sink: ResponseSink;
  /** 0 for the usual number. */
  readonly maxBranches: number;
}

/**
 * The responses of a step that answers many times. Each goes on by itself, several at the same time, and what comes of
 * them leaves in their order; who is too far ahead is asked to wait.
 */
export class StepStream implements ResponseSink {
  readonly #options: StepStreamOptions;
  /** In the order of the responses that they began with. */
  readonly #branches: Branch[] = [];
  readonly #maxBranches: number;
  #room: PromiseWithResolvers<void> | undefined;
  #hasEnded = false;
  #isOver = false;

  constructor(options: StepStreamOptions) {
    this.#options = options;
    this.#maxBranches = options.maxBranches || usualBranches;
  }

  get room(): Promise<void> | undefined {
    return this.#room?.promise ?? this.#options.sink.room;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    if (this.#hasEnded) return;
    this.#hasEnded = final;
    const branch = response && this.#branch();
    if (branch) this.#options.goOn(response, branch);
    this.#flush();
  }

  /** What came before it still leaves. */
  fail(error: InferenceError): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#branch().fail(error);
  }

  #branch(): Branch {
    const branch = new Branch(this.#options.sink, () => this.#flush());
    this.#branches.push(branch);
    return branch;
  }

  /** Hands on what is there of the first branches. */
  #flush(): void {
    for (let [first] = this.#branches; first && !this.#isOver; [first] = this.#branches) {
      first.isFirst();
      this.#handOn(first);
      if (!first.hasEnded) break;
      this.#branches.shift();
    }
    if (this.#hasEnded && this.#branches.length === 0)
      this.#end(() => this.#options.sink.send(undefined, true));
    if (this.#branches.length < this.#maxBranches || this.#isOver) {
      this.#room?.resolve();
      this.#room = undefined;
    } else this.#room ??= Promise.withResolvers();
  }

  #handOn(branch: Branch): void {
    const { sink } = this.#options;
    const responses = branch.take();
    const isLast = this.#hasEnded && branch.hasEnded && this.#branches.length === 1;
    for (const [i, response] of responses.entries()) {
      if (isLast && !branch.error && i === responses.length - 1)
        this.#end(() => sink.send(response, true));
      else sink.send(response, false);
    }
    const { error } = branch;
    if (error) this.#end(() => sink.fail(error));
  }

  #end(tell: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    tell();
  }
}

/** What comes of one response. */
class Branch implements ResponseSink {
  readonly #sink: ResponseSink;
  readonly #onChange: () => void;
  readonly #turn = Promise.withResolvers<void>();
  #responses: InferenceResponse[] = [];
  #isFirst = false;
  hasEnded = false;
  error: InferenceError | undefined;

  constructor(sink: ResponseSink, onChange: () => void) {
    this.#sink = sink;
    this.#onChange = onChange;
  }

  /** Its responses are kept until it is the first. */
  get room(): Promise<void> | undefined {
    return this.#isFirst ? this.#sink.room : this.#turn.promise;
  }

  send(response: InferenceResponse | undefined, final: boolean): void {
    if (this.hasEnded) return;
    if (response) this.#responses.push(response);
    this.hasEnded = final;
    this.#onChange();
  }

  fail(error: InferenceError): void {
    if (this.hasEnded) return;
    this.error = error;
    this.hasEnded = true;
    this.#onChange();
  }

  isFirst(): void {
    this.#isFirst = true;
    this.#turn.resolve();
  }

  take(): readonly InferenceResponse[] {
    const responses = this.#responses;
    this.#responses = [];
    return responses;
  }
}
