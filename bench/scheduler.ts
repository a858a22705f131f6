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

/** Keeps so many requests under way until all are answered; returns microseconds per request. */
function measure(scheduler: Scheduler, request: ValidInferenceRequest): Promise<number> {
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
      sent++;
      const enqueuedAt = performance.now();
      scheduler.enqueue({ request, call: new Call(anonymous, enqueuedAt), sink, enqueuedAt });
    };
    for (let i = 0; i < inflight; i++) send();
  });
}

const plain = requestFor(model);
const hasty = { ...plain, timeoutMicroseconds: 1_000_000 };
const schedulers = {
  direct: [() => directScheduler(options()), plain],
  "direct, with timeouts": [() => directScheduler(options()), hasty],
  "dynamic batches of 8": [() => dynamicBatchScheduler(model.config, batching, options()), plain],
  "the same in order": [
    () => dynamicBatchScheduler(model.config, { ...batching, preserveOrdering: true }, options()),
    plain,
  ],
} as const;
for (const [name, [create, request]] of Object.entries(schedulers)) {
  await measure(create(), request);
  const microseconds = await measure(create(), request);
  process.stdout.write(`${name}: ${microseconds.toFixed(2)} µs a request, ${inflight} in flight\n`);
}
