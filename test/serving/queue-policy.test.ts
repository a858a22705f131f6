import { describe, expect, it } from "vitest";
import type { ModelDynamicBatching } from "../../protocol/model-config.ts";
import { patienceMilliseconds } from "../../serving/queue-policy.ts";
import { noPolicy, plainBatching } from "../helpers/dynamic-batching.ts";
import { requestFor } from "../helpers/requests.ts";
import { modelInput, servedModel } from "../helpers/served-model.ts";

const bounded = { ...noPolicy, defaultTimeoutMicroseconds: 4000 };
const levels = { priorityLevels: 2, defaultPriorityLevel: 2 };

function patience(
  batching: Partial<ModelDynamicBatching> | undefined,
  timeoutMicroseconds = 0,
  priority = 0,
): number {
  const model = servedModel("m", {
    input: [modelInput("IN", "TYPE_FP32", [-1])],
    ...(batching && { dynamicBatching: { ...plainBatching, ...batching } }),
  });
  return patienceMilliseconds(requestFor(model, [1], { timeoutMicroseconds, priority }));
}

describe("patienceMilliseconds", () => {
  it("is what a request asks for where no policy says otherwise", () => {
    expect(patience(undefined, 1500)).toBe(1.5);
    expect(patience({}, 1500)).toBe(1.5);
    expect(patience({})).toBe(Infinity);
  });

  it("is what the policy gives, and less only where that may be asked for", () => {
    expect(patience({ defaultQueuePolicy: bounded }, 1500)).toBe(4);
    const overridden = { ...bounded, allowTimeoutOverride: true };
    expect(patience({ defaultQueuePolicy: overridden }, 1500)).toBe(1.5);
    expect(patience({ defaultQueuePolicy: overridden }, 9000)).toBe(4);
    expect(patience({ defaultQueuePolicy: overridden })).toBe(4);
  });

  it("has no end where a policy bounds nothing, or only delays", () => {
    expect(patience({ defaultQueuePolicy: noPolicy }, 1500)).toBe(Infinity);
    expect(patience({ defaultQueuePolicy: { ...bounded, timeoutAction: "DELAY" } })).toBe(Infinity);
  });

  it("follows the policy of the request's level, of the default level for one that does not exist", () => {
    const batching = { ...levels, priorityQueuePolicy: { 2: bounded } };
    expect(patience(batching, 0, 1)).toBe(Infinity);
    expect(patience(batching, 0, 2)).toBe(4);
    expect(patience(batching, 0, 3)).toBe(4);
    expect(patience(batching)).toBe(4);
  });
});
