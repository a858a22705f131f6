import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { PoolDevice } from "../../cli/pool-file/pool.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tidepool-gpus-"));
  // What is known of the machine is known once a process.
  vi.resetModules();
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  vi.stubEnv("CUDA_VISIBLE_DEVICES", undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Gives this machine a tool that lists so many GPUs, and a pool its device; what is left to use then. */
async function use(device: PoolDevice, gpus: number): Promise<readonly number[]> {
  const lines = Array.from(
    { length: gpus },
    (_, id) => `echo "GPU ${id}: Some GPU (UUID: GPU-${id})"`,
  );
  writeFileSync(path.join(folder, "nvidia-smi"), ["#!/bin/sh", ...lines].join("\n"));
  chmodSync(path.join(folder, "nvidia-smi"), 0o755);
  const { usePoolDevice } = await import("../../cli/pool-device.ts");
  await usePoolDevice("vision", device);
  const { gpuIds } = await import("../../pool/devices.ts");
  return gpuIds();
}

describe("usePoolDevice", () => {
  it("uses all GPUs for auto and for gpu", async () => {
    expect(await use({ kind: "auto" }, 2)).toEqual([0, 1]);
    expect(await use({ kind: "gpu" }, 2)).toEqual([0, 1]);
    expect(process.env["CUDA_VISIBLE_DEVICES"]).toBeUndefined();
  });

  it("uses none for cpu, and lets the runtime see none", async () => {
    expect(await use({ kind: "cpu" }, 2)).toEqual([]);
    expect(process.env["CUDA_VISIBLE_DEVICES"]).toBe("");
  });

  it("uses one for gpu:1, as if there were no other", async () => {
    expect(await use({ kind: "gpu", id: 1 }, 2)).toEqual([0]);
    expect(process.env["CUDA_VISIBLE_DEVICES"]).toBe("1");
  });

  it("refuses a GPU that is not there, and says which are", async () => {
    await expect(use({ kind: "gpu", id: 2 }, 2)).rejects.toThrow(
      "pool 'vision': given device gpu:2, which this machine does not have, expected gpu:0, gpu:1",
    );
  });

  it("refuses a GPU on a machine without any", async () => {
    await expect(use({ kind: "gpu" }, 0)).rejects.toThrow(
      "pool 'vision': given device gpu, which this machine does not have, expected cpu or auto",
    );
  });
});
