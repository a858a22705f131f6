import type { ModelDynamicBatching, ModelQueuePolicy } from "../../protocol/model-config.ts";
import type { Refuse } from "./refuse.ts";

/** Checks the settings of the dynamic batcher against each other and against the largest batch. */
export function checkDynamicBatching(
  batching: ModelDynamicBatching,
  maxBatchSize: number,
  refuse: Refuse,
): void {
  for (const size of batching.preferredBatchSize) {
    if (size <= 0) refuse("dynamic batching preferred size must be positive");
    if (size > maxBatchSize) refuse("dynamic batching preferred size must be <= max batch size");
  }
  checkPriorities(batching, refuse);
  if (batching.preserveOrdering) checkOrdering(batching, refuse);
}

function checkPriorities(batching: ModelDynamicBatching, refuse: Refuse): void {
  const levels = batching.priorityLevels;
  if (levels === 0) return;
  const isLevel = (level: number): boolean => level >= 1 && level <= levels;
  if (!isLevel(batching.defaultPriorityLevel)) {
    refuse(`default priority level must be in range [1, ${levels}]`);
  }
  if (!Object.keys(batching.priorityQueuePolicy).map(Number).every(isLevel)) {
    refuse(`priority queue policy must have priority level in range [1, ${levels}]`);
  }
}

/** Responses leave in the order of their requests, so none may overtake another in the queue. */
function checkOrdering(batching: ModelDynamicBatching, refuse: Refuse): void {
  if (batching.priorityLevels > 1) {
    refuse("Only one priority level is allowed when 'preserve_ordering' is true");
  }
  const { defaultQueuePolicy, priorityQueuePolicy } = batching;
  if ([defaultQueuePolicy, ...Object.values(priorityQueuePolicy)].some(canDelay)) {
    refuse("Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true");
  }
}

function canDelay(policy: ModelQueuePolicy | undefined): boolean {
  return policy?.timeoutAction === "DELAY" && policy.defaultTimeoutMicroseconds > 0;
}
