import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ModelConfig } from "../../protocol/model-config.ts";
import type { Backend } from "./backend.ts";
import { frameworks } from "./python/frameworks.ts";

/** The backends of this build by the name a config calls them; each is imported only by the threads that run it. */
const backends: Readonly<Record<string, () => Promise<Backend>>> = {
  onnxruntime: async () => (await import("./onnxruntime.ts")).onnxruntimeBackend,
};

/** Throws UNSUPPORTED when no backend of that name is part of this build. */
export function checkBackend(config: ModelConfig): void {
  const name = config.backend;
  if (Object.hasOwn(backends, name)) return;
  throw new InferenceError(
    StatusCode.Unsupported,
    `model '${config.name}': backend '${name}' is not available in this version of tidepool; ` +
      `available: ${[...Object.keys(backends), "python", ...frameworks].join(", ")}`,
  );
}

/** The backend itself, for use inside an instance's thread. */
export function importBackend(config: ModelConfig): Promise<Backend> {
  checkBackend(config);
  const load = backends[config.backend];
  if (!load) throw new Error("checkBackend lets nothing else pass");
  return load();
}
