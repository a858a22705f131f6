import { describe, expect, it } from "vitest";
import { parseGpuList } from "../../pool/devices.ts";

describe("parseGpuList", () => {
  it("reads the ids of the vendor tool's list", () => {
    const text =
      "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n  MIG 1g.18gb Device 0: (UUID: MIG-3)\n";
    expect(parseGpuList(text)).toEqual([0, 1]);
  });

  it("finds none in anything else", () => {
    expect(parseGpuList("No devices found.\n")).toEqual([]);
  });
});
