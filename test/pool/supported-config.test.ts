import { describe, expect, it } from "vitest";
import { settingsWithoutEffect } from "../../pool/supported-config.ts";
import { parseConfigPbtxt } from "../../repository/config-pbtxt.ts";

describe("settingsWithoutEffect", () => {
  it.each([
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
      "optimization { graph { level: 1 } } response_cache { enable: true }";
    expect(settingsWithoutEffect(parseConfigPbtxt(text, "config.pbtxt"))).toEqual([]);
  });
});
