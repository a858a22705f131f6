import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import type { ModelConfig } from "../../protocol/model-config.ts";
import type { FetchedVersion } from "../../pool/fetched-version.ts";
import type { VersionSource } from "../../serving/running-version.ts";
import { cpuGroup } from "./instance-groups.ts";
import { servedModel } from "./served-model.ts";

/** A folder of its own that is gone when the test is over. */
export function testFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A version on disk whose only file is the given model. */
export function onnxVersion(
  model: Uint8Array,
  config: Partial<ModelConfig> = {},
): FetchedVersion & VersionSource {
  const modelDirectory = testFolder();
  const versionDirectory = path.join(modelDirectory, "1");
  mkdirSync(versionDirectory);
  writeFileSync(path.join(versionDirectory, "model.onnx"), model);
  const served = servedModel("m", {
    backend: "onnxruntime",
    instanceGroup: [cpuGroup()],
    ...config,
  });
  const files = { modelDirectory, versionDirectory, release: () => Promise.resolve() };
  const fetch = () => Promise.resolve(files);
  return { name: "m", version: "1", config: served.config, fingerprint: "", fetch, ...files };
}
