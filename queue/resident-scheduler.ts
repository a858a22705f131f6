import { InferenceError } from "../protocol/error.ts";
import { validRequest } from "../protocol/valid-request.ts";
import type { RunningVersion } from "../serving/running-version.ts";
import type { PendingRequest, ResponseSink, Scheduler } from "../serving/scheduler.ts";

/** The versions that this process has loaded, or loads when they are asked for, by their keys. */
export type ResidentVersion = (key: string) => Promise<RunningVersion>;

/** Hands requests to a version of this process, which is started when the first of them comes. */
export class ResidentScheduler implements Scheduler {
  readonly #version: () => Promise<RunningVersion>;
  #inflight = 0;
  #drained: (() => void) | undefined;

  constructor(version: () => Promise<RunningVersion>) {
    this.#version = version;
  }

  get inflight(): number {
    return this.#inflight;
  }

  enqueue(pending: PendingRequest): void {
    this.#inflight++;
    const sink = this.#counted(pending.sink);
    void this.#hand({ ...pending, sink });
  }

  stop(): Promise<void> {
    if (this.#inflight === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#drained = resolve));
  }

  async #hand(pending: PendingRequest): Promise<void> {
    try {
      const { model, scheduler } = await this.#version();
      scheduler.enqueue({ ...pending, request: validRequest(model, pending.request) });
    } catch (error) {
      pending.sink.fail(InferenceError.from(error));
    }
  }

  #counted(sink: ResponseSink): ResponseSink {
    const answered = (): void => {
      this.#inflight--;
      if (this.#inflight === 0) this.#drained?.();
    };
    return {
      send(response, final) {
        sink.send(response, final);
        if (final) answered();
      },
      fail(error) {
        sink.fail(error);
        answered();
      },
    };
  }
}
