import { MemoryTier } from "../../../cache/memory-tier.ts";
import { ResponseCache, type SharedTier } from "../../../cache/response-cache.ts";
import type { SchedulerOptions } from "../../../pool/scheduler/queue-scheduler.ts";
import { dynamicBatchScheduler } from "../../../pool/scheduler/dynamic-batch-scheduler.ts";
import { CachingScheduler } from "../../../serving/caching/caching-scheduler.ts";
import type { Flight } from "../../../serving/caching/flight.ts";
import type { InferStatistics } from "../../../protocol/statistics.ts";
import type { InferenceRequest } from "../../../protocol/inference.ts";
import { type SentRequest } from "../../helpers/requests.ts";
import { SchedulerStand } from "../../helpers/scheduler-stand.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { turn } from "../../helpers/fake-clock.ts";

/** Timeouts of requests hold. */
const policy = {
  timeoutAction: "REJECT",
  defaultTimeoutMicroseconds: 3_600_000_000,
  allowTimeoutOverride: true,
  maxQueueSize: 0,
} as const;

const batching = {
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 2,
  defaultPriorityLevel: 1,
  priorityQueuePolicy: {},
  defaultQueuePolicy: policy,
} as const;

const cachedModel = servedModel("m", {
  maxBatchSize: 1,
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
  dynamicBatching: batching,
});

/** Makes a cache in front of a scheduler that batches nothing and heeds timeouts. */
function cachingScheduler(options: SchedulerOptions, redis?: SharedTier): CachingScheduler {
  const memory = new MemoryTier({ maxBytes: 1_000_000 });
  return new CachingScheduler({
    cache: new ResponseCache({ memory, redis }),
    flights: new Map<string, Flight>(),
    clock: options.clock,
    scheduler: dynamicBatchScheduler(cachedModel.config, batching, options),
    statistics: options.statistics,
    digest: "d",
  });
}

/** A cache with time, instances and requests in the hands of the test; all requests are equal but for what is said. */
export class CachingStand extends SchedulerStand {
  constructor(redis?: SharedTier) {
    super(cachedModel, (options) => cachingScheduler(options, redis));
  }

  /** Hands over a request and lets the scheduler act. */
  async ask(id: string, more: Partial<InferenceRequest> = {}): Promise<SentRequest> {
    const sent = this.enqueue(id, [1, 4], more);
    await turn();
    return sent;
  }

  /** The same with an input of its own, which keeps the instance busy until it is finished. */
  occupy(id: string): Promise<SentRequest> {
    const bytes = new Uint8Array(16).fill(9);
    return this.ask(id, { inputs: [{ name: "IN", datatype: "FP32", shape: [1, 4], bytes }] });
  }

  /** How often each thing was counted. */
  get counts(): Readonly<
    Record<"success" | "fail" | "hit" | "miss" | "queue" | "compute", number>
  > {
    const stats: InferStatistics = this.statistics.snapshot().inferenceStats;
    return {
      success: stats.success.count,
      fail: stats.fail.count,
      hit: stats.cacheHit.count,
      miss: stats.cacheMiss.count,
      queue: stats.queue.count,
      compute: stats.computeInfer.count,
    };
  }
}
