import { type BatchPolicy, QueueScheduler, type SchedulerOptions } from "./queue-scheduler.ts";
import type { Scheduler } from "./scheduler.ts";

/** The scheduler of a model that asks for no other: first come, first served, each request an execution of its own. */
export function directScheduler(options: SchedulerOptions): Scheduler {
  return new QueueScheduler(options, oneByOne);
}

const oneByOne: BatchPolicy = { choose: () => 1, askAgainAt: Infinity };
