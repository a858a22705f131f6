import { open } from "node:fs/promises";
import os from "node:os";
import runtime from "onnxruntime-node/package.json" with { type: "json" };
import type { ModelConfig } from "../../protocol/model-config.ts";
import { sessionOptions } from "../backend/session-options.ts";
import { textDigest } from "./file-digests.ts";

/** What is known about a file was seen with this runtime; another one may do otherwise with it. */
export const runtimeVersion: string = runtime.version;

const cpuinfoBytes = 8192;

/**
 * Names an optimised graph by all that it depends on: the model, the runtime, the options that change a graph, and the
 * processor, because the runtime lays weights out for its instructions.
 */
export async function graphKey(modelDigest: string, config: ModelConfig): Promise<string> {
  const { graphOptimizationLevel, extra } = sessionOptions({ config, cores: 1 }, [{ name: "cpu" }]);
  const parts = [
    modelDigest,
    runtimeVersion,
    "cpu",
    graphOptimizationLevel,
    // Decides how constants are computed.
    extra["session.set_denormal_as_zero"] ?? "",
    process.arch,
    await processor(),
  ];
  return textDigest(parts.join("\0"));
}

/** Model and features; virtual machines of one model may show different features. */
async function processor(): Promise<string> {
  const model = os.cpus()[0]?.model ?? "";
  try {
    const cpuinfo = await open("/proc/cpuinfo");
    try {
      // The first processor stands for all; a machine may list hundreds.
      const { buffer, bytesRead } = await cpuinfo.read({ buffer: Buffer.alloc(cpuinfoBytes) });
      const text = buffer.toString("latin1", 0, bytesRead);
      return `${model}\0${/^(?:flags|Features)\s*:.*$/m.exec(text)?.[0] ?? ""}`;
    } finally {
      await cpuinfo.close();
    }
  } catch {
    return model;
  }
}
