import type { ModelDynamicBatching, ModelQueuePolicy } from "../protocol/model-config.ts";
import type { ValidInferenceRequest } from "../protocol/valid-request.ts";

type Batching = ModelDynamicBatching | undefined;

/** The level at which a request waits: 1 comes first, and 0 is the only one of a model without levels. */
export function priorityLevel(batching: Batching, priority: number): number {
  if (!batching || batching.priorityLevels === 0) return 0;
  const isLevel = priority >= 1 && priority <= batching.priorityLevels;
  return isLevel ? priority : batching.defaultPriorityLevel;
}

/** What the config says about the queue of a level, if it says anything. */
export function queuePolicy(batching: Batching, level: number): ModelQueuePolicy | undefined {
  const ofLevel = level > 0 ? batching?.priorityQueuePolicy[level] : undefined;
  return ofLevel ?? batching?.defaultQueuePolicy;
}

/**
 * How long a request may wait in a queue, in milliseconds; Infinity when it may for ever. A policy lets it ask for less
 * than the default at most; where there is none, what the request asks for is heeded.
 */
export function queueTimeoutMilliseconds(
  policy: ModelQueuePolicy | undefined,
  askedMicroseconds: number,
): number {
  const asked = askedMicroseconds > 0 ? askedMicroseconds : Infinity;
  if (!policy) return asked / 1000;
  const most = policy.defaultTimeoutMicroseconds;
  if (most === 0) return Infinity;
  return (policy.allowTimeoutOverride ? Math.min(asked, most) : most) / 1000;
}

/** How long a request may wait before it is refused, in milliseconds; Infinity for one that is only delayed then. */
export function patienceMilliseconds({
  model,
  priority,
  timeoutMicroseconds,
}: ValidInferenceRequest): number {
  const { dynamicBatching } = model.config;
  const policy = queuePolicy(dynamicBatching, priorityLevel(dynamicBatching, priority));
  if (policy?.timeoutAction === "DELAY") return Infinity;
  return queueTimeoutMilliseconds(policy, timeoutMicroseconds);
}
