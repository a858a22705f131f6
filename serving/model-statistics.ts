import type {
  BatchStatistics,
  ModelStatistics,
  StatisticDuration,
} from "../protocol/statistics.ts";
import { LatencyHistogram } from "../telemetry/latency-histogram.ts";
import {
  failureReasons,
  type CacheObservation,
  type FailureReason,
  type InferencePhase,
  type ModelObservation,
} from "../telemetry/model-observation.ts";
import type { PendingRequest } from "./scheduler.ts";

/** What one execution took inside its instance, in nanoseconds. */
export interface ExecutionTimings {
  readonly computeInputNanoseconds: number;
  readonly computeInferNanoseconds: number;
  readonly computeOutputNanoseconds: number;
  /** Where the requests did not wait for all of the rest of their time. */
  readonly queueNanoseconds?: number;
}

/** What the statistics say about whom: one version from its load to its unload. */
export interface StatisticsSubject {
  readonly name: string;
  readonly version: string;
  /** `metric_tags` of the model's config. */
  readonly tags: Readonly<Record<string, string>>;
}

/**
 * Counts what the schedulers of one loaded version do, for the statistics endpoint and for the metrics.
 * It starts at zero with every load, as the reference does. All times are on the scheduler's clock, in milliseconds.
 */
export class ModelStatisticsRecorder {
  readonly #subject: StatisticsSubject;
  readonly #request = new Phase();
  readonly #queue = new Phase();
  readonly #computeInput = new Phase();
  readonly #computeInfer = new Phase();
  readonly #computeOutput = new Phase();
  readonly #batches = new Map<number, BatchStatistics>();
  readonly #failures: Record<FailureReason, number>;
  #failedNanoseconds = 0;
  /** Requests that were run and answered well. */
  #executed = 0;
  #cached = false;
  #cacheHits = 0;
  #cacheMisses = 0;
  readonly #cacheHit = new Phase();
  readonly #cacheMiss = new Phase();
  #inferenceCount = 0;
  #executionCount = 0;
  #lastInference = 0;
  #pending = 0;
  #loadSeconds = 0;

  constructor(subject: StatisticsSubject) {
    this.#subject = subject;
    this.#failures = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 };
  }

  /** The version can answer now; this is how long that took. */
  loaded(seconds: number): void {
    this.#loadSeconds = seconds;
  }

  /** A request waits in its scheduler. */
  enqueued(): void {
    this.#pending++;
  }

  /** So many wait no longer. */
  dequeued(requests: number): void {
    this.#pending -= requests;
  }

  /**
   * An execution has answered its requests. What they spent neither on inputs, inference nor outputs they spent waiting:
   * in the scheduler, or ready on their instance.
   */
  executed(requests: readonly PendingRequest[], timings: ExecutionTimings, now: number): void {
    const { computeInputNanoseconds, computeInferNanoseconds, computeOutputNanoseconds } = timings;
    const batchSize = this.#answered(requests, timings, now);
    this.#executed += requests.length;
    this.#inferenceCount += batchSize;
    this.#computeInput.add(computeInputNanoseconds, requests.length);
    this.#computeInfer.add(computeInferNanoseconds, requests.length);
    this.#computeOutput.add(computeOutputNanoseconds, requests.length);
    this.#countExecution(batchSize, timings);
  }

  /** An execution has failed, and with it each of its requests. */
  executionFailed(requests: readonly PendingRequest[], startedAt: number, now: number): void {
    let batchSize = 0;
    for (const { request, enqueuedAt } of requests) {
      batchSize += itemsOf(request.batchSize);
      this.failed("BACKEND", now - enqueuedAt);
    }
    const computeInferNanoseconds = (now - startedAt) * nanosecondsPerMillisecond;
    this.#countExecution(batchSize, { ...noTimings, computeInferNanoseconds });
  }

  /** A request has failed after so many milliseconds. */
  failed(reason: FailureReason, milliseconds: number): void {
    this.#failures[reason]++;
    this.#failedNanoseconds += milliseconds * nanosecondsPerMillisecond;
  }

  /** There is a cache in front of the version. */
  cacheEnabled(): void {
    this.#cached = true;
  }

  /** A request was answered without being run; what it did not spend on the lookup it spent waiting. */
  cacheHit(lookupNanoseconds: number, requestMilliseconds: number): void {
    const nanoseconds = requestMilliseconds * nanosecondsPerMillisecond;
    this.#cacheHits++;
    this.#cacheHit.add(lookupNanoseconds, 1);
    this.#request.add(nanoseconds, 1);
    this.#queue.add(Math.max(0, nanoseconds - lookupNanoseconds), 1);
  }

  /** A request was looked up in vain, run, and its answer kept. */
  cacheMiss(nanoseconds: number): void {
    this.#cacheMisses++;
    this.#cacheMiss.add(nanoseconds, 1);
  }

  /** For the statistics endpoint. */
  snapshot(): ModelStatistics {
    const executed = this.#executed;
    const success = executed + this.#cacheHits;
    const failed = failureReasons.reduce((sum, reason) => sum + this.#failures[reason], 0);
    return {
      name: this.#subject.name,
      version: this.#subject.version,
      lastInference: this.#lastInference,
      inferenceCount: this.#inferenceCount,
      executionCount: this.#executionCount,
      inferenceStats: {
        success: this.#request.duration(success),
        fail: duration(failed, this.#failedNanoseconds),
        queue: this.#queue.duration(success),
        computeInput: this.#computeInput.duration(executed),
        computeInfer: this.#computeInfer.duration(executed),
        computeOutput: this.#computeOutput.duration(executed),
        cacheHit: this.#cacheHit.duration(this.#cacheHits),
        cacheMiss: this.#cacheMiss.duration(this.#cacheMisses),
      },
      batchStats: [...this.#batches.values()]
        .toSorted((a, b) => a.batchSize - b.batchSize)
        .map(roundedBatch),
      responseStats: {},
    };
  }

  /** For the metrics. */
  observe(): ModelObservation {
    const phases: Record<InferencePhase, Phase> = {
      request: this.#request,
      queue: this.#queue,
      computeInput: this.#computeInput,
      computeInfer: this.#computeInfer,
      computeOutput: this.#computeOutput,
    };
    return {
      ...this.#subject,
      success: this.#executed + this.#cacheHits,
      failures: { ...this.#failures },
      inferenceCount: this.#inferenceCount,
      executionCount: this.#executionCount,
      pending: this.#pending,
      loadSeconds: this.#loadSeconds,
      phases,
      ...(this.#cached && { cache: this.#observeCache() }),
    };
  }

  #observeCache(): CacheObservation {
    return {
      hits: this.#cacheHits,
      hit: this.#cacheHit,
      misses: this.#cacheMisses,
      miss: this.#cacheMiss,
    };
  }

  /** Times each request as a whole; gives the items of the batch. */
  #answered(requests: readonly PendingRequest[], timings: ExecutionTimings, now: number): number {
    const { computeInputNanoseconds, computeInferNanoseconds, computeOutputNanoseconds } = timings;
    const compute = computeInputNanoseconds + computeInferNanoseconds + computeOutputNanoseconds;
    let batchSize = 0;
    for (const { request, enqueuedAt } of requests) {
      const nanoseconds = (now - enqueuedAt) * nanosecondsPerMillisecond;
      this.#request.add(nanoseconds, 1);
      this.#queue.add(timings.queueNanoseconds ?? Math.max(0, nanoseconds - compute), 1);
      batchSize += itemsOf(request.batchSize);
    }
    return batchSize;
  }

  #countExecution(batchSize: number, timings: ExecutionTimings): void {
    let batch = this.#batches.get(batchSize);
    if (!batch) this.#batches.set(batchSize, (batch = emptyBatch(batchSize)));
    add(batch.computeInput, timings.computeInputNanoseconds);
    add(batch.computeInfer, timings.computeInferNanoseconds);
    add(batch.computeOutput, timings.computeOutputNanoseconds);
    this.#executionCount++;
    this.#lastInference = Date.now();
  }
}

/** The time that successful requests spent in one phase. */
class Phase {
  readonly histogram = new LatencyHistogram();
  #nanoseconds = 0;

  get microseconds(): number {
    return this.#nanoseconds / 1000;
  }

  /** As many requests spent so many nanoseconds each. */
  add(nanoseconds: number, requests: number): void {
    this.#nanoseconds += nanoseconds * requests;
    this.histogram.observe(nanoseconds / 1000, requests);
  }

  duration(count: number): StatisticDuration {
    return duration(count, this.#nanoseconds);
  }
}

const nanosecondsPerMillisecond = 1e6;

const noTimings: ExecutionTimings = {
  computeInputNanoseconds: 0,
  computeInferNanoseconds: 0,
  computeOutputNanoseconds: 0,
};

/** A request without a batch dimension is one item. */
function itemsOf(batchSize: number): number {
  return Math.max(1, batchSize);
}

function duration(count: number, nanoseconds: number): StatisticDuration {
  return { count, nanoseconds: Math.round(nanoseconds) };
}

function add(sum: StatisticDuration, nanoseconds: number): void {
  sum.count++;
  sum.nanoseconds += nanoseconds;
}

function emptyBatch(batchSize: number): BatchStatistics {
  return {
    batchSize,
    computeInput: duration(0, 0),
    computeInfer: duration(0, 0),
    computeOutput: duration(0, 0),
  };
}

function rounded({ count, nanoseconds }: StatisticDuration): StatisticDuration {
  return duration(count, nanoseconds);
}

function roundedBatch(batch: BatchStatistics): BatchStatistics {
  return {
    batchSize: batch.batchSize,
    computeInput: rounded(batch.computeInput),
    computeInfer: rounded(batch.computeInfer),
    computeOutput: rounded(batch.computeOutput),
  };
}
