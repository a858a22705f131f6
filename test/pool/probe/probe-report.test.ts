import { describe, expect, it } from "vitest";
import { isProbeReport } from "../../../pool/probe/probe-report.ts";

const tensor = { name: "X", datatype: "FP32", shape: [-1, 3] };
const finding = { inputs: [tensor], outputs: [tensor], loadMilliseconds: 1.5, peakBytes: 100 };

describe("isProbeReport", () => {
  it.each([
    { opened: true, finding },
    { opened: true, finding: { ...finding, inputs: [] } },
    { opened: false, code: "INTERNAL", message: "failed" },
  ])("takes %j", (report) => {
    expect(isProbeReport(report)).toBe(true);
  });

  it.each([
    undefined,
    "opened",
    { opened: true },
    { opened: "yes", finding },
    { opened: true, finding: { ...finding, peakBytes: "100" } },
    { opened: true, finding: { ...finding, loadMilliseconds: Number.NaN } },
    { opened: true, finding: { ...finding, inputs: tensor } },
    { opened: true, finding: { ...finding, inputs: [{ ...tensor, name: 1 }] } },
    { opened: true, finding: { ...finding, inputs: [{ ...tensor, datatype: "FLOAT" }] } },
    { opened: true, finding: { ...finding, outputs: [{ ...tensor, shape: [-2] }] } },
    { opened: true, finding: { ...finding, outputs: [{ ...tensor, shape: [1.5] }] } },
    {
      opened: true,
      finding: { ...finding, outputs: Array.from({ length: 10_001 }, () => tensor) },
    },
    { opened: false, code: "ODD", message: "failed" },
    { opened: false, code: "INTERNAL", message: "x".repeat(10_001) },
  ])("refuses what a process that was taken over might send (%#)", (report) => {
    expect(isProbeReport(report)).toBe(false);
  });
});
