import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError, invalidArgument } from "../../protocol/error.ts";
import type { Clock } from "../../serving/clock.ts";
import type { ModelStatisticsRecorder } from "../../serving/model-statistics.ts";
import type { PendingRequest } from "../../serving/scheduler.ts";
import type { ModelInstance } from "../instance/model-instance.ts";
import type { WarmupSample } from "./read-warmup.ts";

/** What counts the executions of samples, as those of clients. */
export interface WarmupOptions {
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
  /** For all samples on one instance. */
  readonly timeLimitMilliseconds: number;
}

/**
 * Runs samples on an instance, so that no client waits for what a model does only once.
 * Rejects with INVALID_ARG and the name of the first sample that fails, or that the time limit meets.
 */
export async function warmUp(
  instance: ModelInstance,
  samples: readonly WarmupSample[],
  options: WarmupOptions,
): Promise<void> {
  const { clock, timeLimitMilliseconds } = options;
  const { promise: overdue, resolve } = Promise.withResolvers<string>();
  const text = `all samples took longer than --warmup-timeout-secs (${timeLimitMilliseconds / 1000} s)`;
  const cancel = clock.after(timeLimitMilliseconds, () => resolve(text));
  try {
    for (const sample of samples) {
      checkBatchSize(instance, sample);
      for (let time = 0; time < sample.count; time++)
        await runUntil(overdue, instance, sample, options);
    }
  } finally {
    cancel();
  }
}

/** @param overdue resolves with the reason that it is not waited for any longer */
async function runUntil(
  overdue: Promise<string>,
  instance: ModelInstance,
  sample: WarmupSample,
  options: WarmupOptions,
): Promise<void> {
  const reason = await Promise.race([run(instance, sample, options), overdue]);
  if (reason !== undefined) throw failure(sample, [reason]);
}

/** A sample goes past the scheduler, which would keep a batch within its bound. */
function checkBatchSize(instance: ModelInstance, sample: WarmupSample): void {
  const { maxBatchSize } = sample.request.model.config;
  if (sample.batchSize <= Math.max(1, maxBatchSize)) return;
  const { batchSize } = sample;
  throw failure(sample, [
    `batch size ${batchSize} for '${instance.name}', max allowed is ${maxBatchSize}`,
  ]);
}

async function run(
  instance: ModelInstance,
  sample: WarmupSample,
  { statistics, clock }: WarmupOptions,
): Promise<void> {
  const errors = new Set<string>();
  const fail = ({ message }: InferenceError): void => void errors.add(message);
  const enqueuedAt = clock.now();
  const requests = Array.from({ length: sample.batchSize }, (): PendingRequest => ({
    request: sample.request,
    call: new Call(anonymous, enqueuedAt),
    sink: { send: () => {}, fail },
    enqueuedAt,
  }));
  const timings = await instance.execute(requests).catch((cause: unknown) => {
    throw failure(sample, [InferenceError.from(cause).message], cause);
  });
  if (errors.size > 0) throw failure(sample, [...errors]);
  statistics.executed(requests, timings, clock.now());
}

/** In the reference's words, which end each error so. */
function failure(
  { name }: WarmupSample,
  errors: readonly string[],
  cause?: unknown,
): InferenceError {
  const list = errors.map((error) => `${error}; `).join("");
  return invalidArgument(`failed to run warmup sample '${name}': ${list}`, { cause });
}
