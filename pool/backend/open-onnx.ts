import type { ModelConfig } from "../../protocol/model-config.ts";
import type { FetchedVersion } from "../fetched-version.ts";
import { threadStarter } from "../instance/instance-group.ts";
import type { OpenedModel } from "../opened-model.ts";
import type { Probe } from "../probe/probe.ts";
import { checkSequenceTensors } from "../scheduler/sequence-check.ts";
import { checkOnnx } from "./check-onnx.ts";
import { completeOnnx, type CompleteOptions } from "./complete-onnx.ts";

export interface OpenOnnxOptions extends CompleteOptions {
  readonly probe: Probe;
  readonly gpuCount: number;
}

/** Opens a model of this process's own runtimes: what the probe finds in its file completes the config. */
export async function openOnnx(
  source: FetchedVersion,
  { probe, gpuCount, defaultMaxBatchSize }: OpenOnnxOptions,
): Promise<OpenedModel> {
  const { finding, graph } = await probe.version(source, runsOnCpu(source.config, gpuCount));
  return {
    complete: async (config) => completeOnnx(config, finding, { defaultMaxBatchSize }),
    check(config) {
      checkOnnx(config, finding);
      checkSequenceTensors(config, finding);
    },
    starter: (model) => threadStarter(source, model, graph?.folder),
    release: async () => graph?.release(),
  };
}

function runsOnCpu(config: ModelConfig, gpuCount: number): boolean {
  return gpuCount === 0 || config.instanceGroup.some(({ kind }) => kind === "KIND_CPU");
}
