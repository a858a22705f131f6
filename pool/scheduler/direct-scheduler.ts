import { type BatchPolicy, QueueScheduler, type SchedulerOptions } from "./queue-scheduler.ts";
import { requestRunner } from "./run-requests.ts";
import type { Scheduler } from "../../serving/scheduler.ts";

/** The scheduler of a model that asks for no other: first come, first served, each request an execution of its own. */
export function directScheduler(options: SchedulerOptions): Scheduler {
  return new QueueScheduler(options, oneByOne, requestRunner(options.statistics, options.clock));
}

const oneByOne: BatchPolicy = { choose: () => 1, askAgainAt: Infinity };
