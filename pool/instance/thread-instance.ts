import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { InstanceSettings } from "../backend/backend.ts";
import type { Batcher } from "../scheduler/batch.ts";
import { Pace } from "./pace.ts";
import { Restarts } from "./restarts.ts";
import { systemClock, type Clock } from "../../serving/clock.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import { traceExecution } from "../../serving/trace-execution.ts";
import type { Answer } from "./messages.ts";
import type { ModelInstance } from "./model-instance.ts";
import type { ExecutionTimings } from "../../serving/model-statistics.ts";
import { ThreadLink } from "./thread-link.ts";

interface Outstanding {
  readonly id: number;
  readonly requests: readonly PendingRequest[];
  readonly mergeNanoseconds: number;
  readonly resolve: (timings: ExecutionTimings) => void;
  readonly reject: (error: InferenceError) => void;
}

export interface ThreadInstanceOptions {
  readonly name: string;
  readonly settings: InstanceSettings;
  readonly batcher: Batcher;
  /** Told when there may be room again. */
  readonly onRoom: () => void;
  /** What it does after each start of its thread, before it has room; a start that fails in it has failed. */
  readonly prepare?: (instance: ModelInstance) => Promise<void>;
  readonly clock?: Clock;
  /** The thread's own file, where it is not the usual one. */
  readonly script?: URL;
}

/**
 * A model instance in a thread of its own, because a running model blocks its thread. When the thread dies, what it had
 * fails and another one is started, later and later while that keeps failing.
 */
export class ThreadInstance implements ModelInstance {
  readonly name: string;
  readonly #options: ThreadInstanceOptions;
  readonly #restarts: Restarts;
  readonly #pace = new Pace();
  /**
   * In the order in which they are answered. A Map would leave its old tables behind, which lead to one another: once
   * one of them is old, the scavenger keeps everything that ever stood in the later ones.
   */
  readonly #outstanding: Outstanding[] = [];
  #link: ThreadLink | undefined;
  #prepared = false;
  #nextId = 0;

  private constructor(options: ThreadInstanceOptions) {
    this.name = options.name;
    this.#options = options;
    this.#restarts = new Restarts(options.clock ?? systemClock, () => void this.#restart());
  }

  /** Resolves when the model is loaded and prepared; rejects with the reason that it could not be. */
  static async start(options: ThreadInstanceOptions): Promise<ThreadInstance> {
    const instance = new ThreadInstance(options);
    await instance.#open();
    try {
      await instance.#prepare();
    } catch (error) {
      await instance.close();
      throw error;
    }
    return instance;
  }

  async #open(): Promise<void> {
    const { settings, script } = this.#options;
    const link = await ThreadLink.open(
      settings,
      { answered: (answers) => this.#answered(answers), gone: (cause) => this.#gone(cause) },
      script,
    );
    if (this.#restarts.ended) await link.close();
    else this.#link = link;
  }

  async #prepare(): Promise<void> {
    await this.#options.prepare?.(this);
    this.#prepared = true;
  }

  /** False while the thread is down or being prepared. */
  get alive(): boolean {
    return this.#link !== undefined && this.#prepared;
  }

  /** Executions handed over and not answered. */
  get outstanding(): number {
    return this.#outstanding.length;
  }

  get hasRoom(): boolean {
    if (!this.alive) return false;
    const size = this.#outstanding.length;
    return size === 0 || this.#pace.allowsBehind(size);
  }

  async execute(requests: readonly PendingRequest[]): Promise<ExecutionTimings> {
    const link = this.#link;
    if (!link) throw this.#down("is being restarted");
    const started = performance.now();
    const { batcher } = this.#options;
    const valid = requests.map(({ request }) => request);
    const inputs = batcher.merge(valid);
    const outputs = batcher.outputs(valid);
    this.#refuseUnknown(link, inputs, outputs);
    const mergeNanoseconds = nanosecondsSince(started);
    return await new Promise((resolve, reject) => {
      const id = this.#nextId++;
      link.send({ id, inputs, outputs }, this.#outstanding.length === 0);
      this.#outstanding.push({ id, requests, mergeNanoseconds, resolve, reject });
    });
  }

  #refuseUnknown(
    link: ThreadLink,
    inputs: readonly { readonly name: string }[],
    outputs: readonly string[],
  ): void {
    const input = inputs.find(({ name }) => !link.takes(name));
    const output = outputs.find((name) => !link.gives(name));
    if (!input && output === undefined) return;
    const subject = input ? `input '${input.name}'` : `output '${output}'`;
    const text = `unexpected inference ${subject} for model '${this.#options.settings.modelName}'`;
    throw new InferenceError(StatusCode.InvalidArg, text);
  }

  #answered(answers: readonly Answer[]): void {
    if (this.#prepared) this.#restarts.succeeded();
    for (const answer of answers) {
      const index = this.#outstanding.findIndex(({ id }) => id === answer.id);
      const outstanding = this.#outstanding[index];
      if (!outstanding) continue;
      this.#outstanding.splice(index, 1);
      if ("error" in answer) outstanding.reject(answer.error);
      else this.#deliver(outstanding, answer);
    }
    this.#options.onRoom();
  }

  #deliver(
    { requests, mergeNanoseconds, resolve, reject }: Outstanding,
    answer: Exclude<Answer, { error: unknown }>,
  ): void {
    const started = performance.now();
    const computeInputNanoseconds = mergeNanoseconds + answer.inputNanoseconds;
    const computeInferNanoseconds = answer.inferNanoseconds;
    this.#pace.took(computeInferNanoseconds);
    try {
      const responses = this.#options.batcher.split(
        requests.map(({ request }) => request),
        answer.outputs,
      );
      traceExecution(requests, { computeInputNanoseconds, computeInferNanoseconds }, started);
      for (const [i, { sink }] of requests.entries()) sink.send(responses[i], true);
    } catch (error) {
      reject(InferenceError.from(error));
      return;
    }
    resolve({
      computeInputNanoseconds,
      computeInferNanoseconds,
      computeOutputNanoseconds: nanosecondsSince(started),
    });
  }

  #gone(cause: Error): void {
    this.#link = undefined;
    this.#prepared = false;
    this.#failOutstanding("died while it ran the request", cause);
    this.#restarts.later();
  }

  #failOutstanding(problem: string, cause?: Error): void {
    for (const { reject } of this.#outstanding.splice(0)) reject(this.#down(problem, cause));
  }

  async #restart(): Promise<void> {
    try {
      await this.#open();
    } catch {
      this.#restarts.later();
      return;
    }
    try {
      await this.#prepare();
      this.#options.onRoom();
    } catch {
      await this.#giveUpThread();
    }
  }

  async #giveUpThread(): Promise<void> {
    const link = this.#link;
    if (!link) return; // it has died, and its restart is planned
    this.#link = undefined;
    this.#failOutstanding("is being restarted");
    await link.close();
    this.#restarts.later();
  }

  #down(problem: string, cause?: Error): InferenceError {
    const text = `model '${this.#options.settings.modelName}': instance '${this.name}' ${problem}`;
    return new InferenceError(StatusCode.Unavailable, text, { cause });
  }

  /** Ends the thread and frees its memory; what still runs is given up. */
  async close(): Promise<void> {
    this.#restarts.end();
    const link = this.#link;
    this.#link = undefined;
    this.#failOutstanding("was unloaded while it ran the request");
    await link?.close();
  }
}

function nanosecondsSince(started: number): number {
  return Math.round((performance.now() - started) * 1e6);
}
