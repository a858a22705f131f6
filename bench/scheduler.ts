/**
 * What a request costs between the engine and an instance: both schedulers over an instance that answers at once.
 * Run with `node bench/scheduler.ts [in flight]`.
 */
import { systemClock } from "../serving/clock.ts";
import { directScheduler } from "../pool/scheduler/direct-scheduler.ts";
import { dynamicBatchScheduler } from "../pool/scheduler/dynamic-batch-scheduler.ts";
import type { SchedulerOptions } from "../pool/scheduler/queue-scheduler.ts";
import type { ResponseSink, Scheduler } from "../serving/scheduler.ts";
import { anonymous, Call } from "../protocol/call.ts";
import type { ModelDynamicBatching } from "../protocol/model-config.ts";
import type { ValidInferenceRequest } from "../protocol/valid-request.ts";
import { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import { InstantInstances } from "../test/helpers/instant-instances.ts";
import { requestFor } from "../test/helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../test/helpers/served-model.ts";

const inflight = Number(process.argv[2] ?? 64);
const requests = 400_000;

const model = servedModel("m", {
  maxBatchSize: 8,
  input: [modelInput("IN", "TYPE_FP32", [4])],
  output: [modelOutput("OUT", "TYPE_FP32", [4])],
});
const batching = {
  preferredBatchSize: [8],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
};

function options(): SchedulerOptions {
  return {
    instances: new InstantInstances(),
    statistics: new ModelStatisticsRecorder({ ...model, tags: {} }),
    clock: systemClock,
  };
}

/** Keeps so many requests under way, one kind after the other, until all are answered; returns microseconds per request. */
function measure(scheduler: Scheduler, kinds: readonly ValidInferenceRequest[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    let sent = 0;
    let answered = 0;
    const sink: ResponseSink = {
      send() {
        answered++;
        if (answered === requests) resolve(((performance.now() - startedAt) * 1000) / requests);
        else if (sent < requests) send();
      },
      fail: reject,
    };
    const send = (): void => {
      const request = kinds[sent++ % kinds.length];
      if (!request) throw new Error("there is nothing to send");
      const enqueuedAt = performance.now();
      scheduler.enqueue({ request, call: new Call(anonymous, enqueuedAt), sink, enqueuedAt });
    };
    for (let i = 0; i < inflight; i++) send();
  });
}

const plain = requestFor(model);
const hasty = { ...plain, timeoutMicroseconds: 1_000_000 };
const ordered = { ...batching, preserveOrdering: true };
const levels = { ...batching, priorityLevels: 4, defaultPriorityLevel: 2 };
const policy = {
  timeoutAction: "DELAY",
  defaultTimeoutMicroseconds: 1_000_000,
  allowTimeoutOverride: true,
  maxQueueSize: 60_000,
} as const;
const priorities = [3, 1, 4, 2].map((priority) => ({ ...plain, priority }));
const schedulers = {
  direct: [() => directScheduler(options()), [plain]],
  "direct, with timeouts": [() => directScheduler(options()), [hasty]],
  "dynamic batches of 8": [() => dynamic(batching), [plain]],
  "the same in order": [() => dynamic(ordered), [plain]],
  "the same with 4 priority levels": [() => dynamic(levels), priorities],
  "and a queue policy": [() => dynamic({ ...levels, defaultQueuePolicy: policy }), priorities],
} as const;
for (const [name, [create, kinds]] of Object.entries(schedulers)) {
  await measure(create(), kinds);
  const microseconds = await measure(create(), kinds);
  process.stdout.write(`${name}: ${microseconds.toFixed(2)} µs a request, ${inflight} in flight\n`);
}

function dynamic(settings: ModelDynamicBatching): Scheduler {
  return dynamicBatchScheduler(model.config, settings, options());
}
