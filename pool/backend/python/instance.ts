import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { type Clock, systemClock } from "../../../serving/clock.ts";
import type { ExecutionTimings } from "../../../serving/model-statistics.ts";
import type { PendingRequest } from "../../../serving/scheduler.ts";
import type { RunningInstance } from "../../instance/instance-group.ts";
import type { ModelInstance } from "../../instance/model-instance.ts";
import { Pace } from "../../instance/pace.ts";
import { Restarts } from "../../instance/restarts.ts";
import type { UnbegunExecution } from "./executions.ts";
import type { PythonLink } from "./link.ts";

/** Requests that one instance goes on to answer after `execute` has returned. */
const maxOpen = 4096;

export interface PythonInstanceOptions {
  readonly name: string;
  readonly modelName: string;
  /** Starts a process and has its model initialize, for this instance. */
  readonly open: (instance: PythonInstance) => Promise<PythonLink>;
  /** Told when there may be room again. */
  readonly onRoom: () => void;
  /** What it does after each start of its process, before it has room; a start that fails in it has failed. */
  readonly prepare?: (instance: ModelInstance) => Promise<void>;
  readonly clock?: Clock;
}

/**
 * A model instance in a Python process of its own. When the process ends, what it had begun fails and another one is
 * started, later and later while that keeps failing; it gets what the last one had not begun.
 */
export class PythonInstance implements RunningInstance {
  readonly name: string;
  readonly runsOnce = true;
  readonly #options: PythonInstanceOptions;
  readonly #restarts: Restarts;
  readonly #pace = new Pace();
  #link: PythonLink | undefined;
  #prepared = false;
  /** What the last process had not begun. */
  #unbegun: readonly UnbegunExecution[] = [];

  private constructor(options: PythonInstanceOptions) {
    this.name = options.name;
    this.#options = options;
    this.#restarts = new Restarts(options.clock ?? systemClock, () => void this.#restart());
  }

  /** Resolves when the model is initialized and prepared; rejects with the reason that it could not be. */
  static async start(options: PythonInstanceOptions): Promise<PythonInstance> {
    const instance = new PythonInstance(options);
    try {
      await instance.#open();
    } catch (error) {
      await instance.close();
      throw error;
    }
    return instance;
  }

  async #open(): Promise<void> {
    const link = await this.#options.open(this);
    if (this.#restarts.ended) {
      await link.close();
      return;
    }
    this.#link = link;
    await this.#options.prepare?.(this);
    this.#prepared = true;
    for (const { requests, resolve, reject } of this.#takeUnbegun())
      link.execute(requests).then(resolve, reject);
  }

  #takeUnbegun(): readonly UnbegunExecution[] {
    const unbegun = this.#unbegun;
    this.#unbegun = [];
    return unbegun;
  }

  get alive(): boolean {
    return this.#link !== undefined && this.#prepared;
  }

  get outstanding(): number {
    return this.#link?.running ?? 0;
  }

  get hasRoom(): boolean {
    const link = this.#link;
    if (!link || !this.#prepared || link.open >= maxOpen) return false;
    const { running } = link;
    // What waits behind a call might be what the call waits for.
    return running === 0 || (this.#pace.allowsBehind(running) && !link.isCalling);
  }

  async execute(requests: readonly PendingRequest[]): Promise<ExecutionTimings> {
    if (this.#link) return this.#link.execute(requests);
    throw this.#restarting();
  }

  #restarting(): InferenceError {
    const text = `model '${this.#options.modelName}': instance '${this.name}' is being restarted`;
    return new InferenceError(StatusCode.Unavailable, text);
  }

  /** The process has returned from an execution. */
  executed({ computeInferNanoseconds }: ExecutionTimings): void {
    this.#pace.took(computeInferNanoseconds);
    if (this.#prepared) this.#restarts.succeeded();
    this.#options.onRoom();
  }

  /** The process has ended without being told to. */
  gone(error: InferenceError, unbegun: readonly UnbegunExecution[]): void {
    this.#link = undefined;
    if (this.#prepared) {
      this.#unbegun = unbegun;
      this.#restarts.later();
    } else {
      // What prepares it fails, and tells of it.
      for (const { reject } of unbegun) reject(error);
    }
    this.#prepared = false;
  }

  async #restart(): Promise<void> {
    try {
      await this.#open();
      this.#options.onRoom();
    } catch {
      const link = this.#link;
      this.#link = undefined;
      this.#failUnbegun();
      await link?.close();
      this.#restarts.later();
    }
  }

  /** It may take long until there is a process: whoever has waited may ask another instance. */
  #failUnbegun(): void {
    for (const { reject } of this.#takeUnbegun()) reject(this.#restarting());
  }

  /** Ends the process; what still runs is given up. */
  async close(): Promise<void> {
    this.#restarts.end();
    this.#failUnbegun();
    const link = this.#link;
    this.#link = undefined;
    await link?.close();
  }
}
