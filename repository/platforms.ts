import type { ModelConfig } from "../protocol/model-config.ts";

/** The backends that a platform or a file name implies; which of them can run is for the pool to say. */
export const platforms = [
  {
    platform: "onnxruntime_onnx",
    backend: "onnxruntime",
    fileName: "model.onnx",
    extension: ".onnx",
  },
  { platform: "", backend: "python", fileName: "model.py", extension: ".py" },
  { platform: "tensorrt_plan", backend: "tensorrt", fileName: "model.plan", extension: ".plan" },
  { platform: "pytorch_libtorch", backend: "pytorch", fileName: "model.pt", extension: ".pt" },
  {
    platform: "tensorflow_savedmodel",
    backend: "tensorflow",
    fileName: "model.savedmodel",
    extension: ".savedmodel",
  },
  {
    platform: "tensorflow_graphdef",
    backend: "tensorflow",
    fileName: "model.graphdef",
    extension: ".graphdef",
  },
  { platform: "", backend: "openvino", fileName: "model.xml", extension: ".xml" },
] as const;

/** True for a platform that the config may name instead of a backend. */
export function isPlatform(name: string): boolean {
  return name !== "" && platforms.some(({ platform }) => platform === name);
}

/** True for a model that is a graph of other models, or says so without giving the graph. */
export function isEnsemble(config: ModelConfig): boolean {
  return config.platform === "ensemble" || config.ensembleScheduling !== undefined;
}
