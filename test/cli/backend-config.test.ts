import { describe, expect, it } from "vitest";
import { parseBackendConfig } from "../../cli/backend-config.ts";

describe("parseBackendConfig", () => {
  it("has the reference's default batch size", () => {
    expect(parseBackendConfig([])).toEqual({ defaultMaxBatchSize: 4, warnings: [] });
  });

  it.each(["default-max-batch-size=8", ",default-max-batch-size=8"])("takes %s for all", (text) => {
    expect(parseBackendConfig([text]).defaultMaxBatchSize).toBe(8);
  });

  it("takes the setting of the onnxruntime backend, the last one", () => {
    const texts = ["default-max-batch-size=8", "onnxruntime,default-max-batch-size=0"];
    expect(parseBackendConfig(texts).defaultMaxBatchSize).toBe(0);
  });

  it("warns of a setting that changes nothing", () => {
    const { defaultMaxBatchSize, warnings } = parseBackendConfig([
      "tensorflow,default-max-batch-size=8",
      "python,shm-default-byte-size=1",
    ]);
    expect(defaultMaxBatchSize).toBe(4);
    expect(warnings).toHaveLength(2);
  });

  it.each(["", "onnxruntime", "default-max-batch-size=many"])("refuses '%s'", (text) => {
    expect(() => parseBackendConfig([text])).toThrow("--backend-config: given");
  });
});
