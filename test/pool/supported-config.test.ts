import { describe, expect, it } from "vitest";
import { settingsWithoutEffect } from "../../pool/supported-config.ts";
import { parseConfigPbtxt } from "../../repository/config-pbtxt.ts";

describe("settingsWithoutEffect", () => {
  it.each([
    ["dynamic_batching.priority_levels", "dynamic_batching { priority_levels: 2 }"],
    [
      "dynamic_batching.default_queue_policy",
      "dynamic_batching { default_queue_policy { max_queue_size: 4 } }",
    ],
    [
      "dynamic_batching.priority_queue_policy",
      "dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: 4 } } }",
    ],
    ["model_warmup", 'model_warmup { name: "w" }'],
    ["response_cache.enable", "response_cache { enable: true }"],
    ["instance_group.rate_limiter", "instance_group { rate_limiter { priority: 2 } }"],
    ["instance_group.host_policy", 'instance_group { host_policy: "node_0" }'],
    ["optimization.cuda", "optimization { cuda { graphs: true } }"],
    ["optimization.priority", "optimization { priority: PRIORITY_MAX }"],
    ["optimization.eager_batching", "optimization { eager_batching: true }"],
    ["cc_model_filenames", 'cc_model_filenames { key: "7.5" value: "model_75.onnx" }'],
    ["model_metrics", "model_metrics { metric_control {} }"],
  ])("names %s where it is set", (setting, text) => {
    expect(settingsWithoutEffect(parseConfigPbtxt(text, "config.pbtxt"))).toEqual([setting]);
  });

  it("is silent about what has an effect", () => {
    const text =
      "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 5 } instance_group { count: 2 }" +
      "optimization { graph { level: 1 } } response_cache { enable: false }";
    expect(settingsWithoutEffect(parseConfigPbtxt(text, "config.pbtxt"))).toEqual([]);
  });
});
