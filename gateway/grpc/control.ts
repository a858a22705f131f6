import type { UntypedHandleCall } from "@grpc/grpc-js";
import { seenBy } from "../../auth/caller.ts";
import type { DataPlane } from "../data-plane.ts";
import { statisticsFields } from "./convert.ts";
import { logSettingsMethod } from "./log-settings.ts";
import type { GrpcOptions } from "./options.ts";
import { repositoryMethods } from "./repository.ts";
import type { GrpcMethods } from "./services.ts";
import { sharedMemoryMethods } from "./shared-memory.ts";
import { traceSettingsMethod } from "./trace-settings.ts";
import { unaryMethod } from "./unary-method.ts";
import type { Answer } from "./unary-method.ts";

/** Every method that runs no model: health, metadata, config, statistics, the repository, logging, shared memory. */
export function controlMethods(plane: DataPlane, options: GrpcOptions): GrpcMethods {
  const method = (name: string, answer: Answer): UntypedHandleCall =>
    unaryMethod(name, answer, options);
  return {
    ServerLive: method("ServerLive", () => ({ live: plane.live() })),
    ServerReady: method("ServerReady", async () => ({ ready: await plane.ready() })),
    ServerMetadata: method("ServerMetadata", () => plane.server),
    ModelReady: method("ModelReady", async ({ name, version }) => ({
      ready: await plane.modelReady(name, version),
    })),
    ModelMetadata: method("ModelMetadata", ({ name, version }) => plane.metadata(name, version)),
    ModelConfig: method("ModelConfig", async ({ name, version }) => ({
      config: await plane.config(name, version),
    })),
    ModelStatistics: method("ModelStatistics", async ({ name, version }, caller) => ({
      modelStats: seenBy(caller, await plane.statistics(name, version)).map(statisticsFields),
    })),
    ...repositoryMethods(plane, options),
    LogSettings: logSettingsMethod(options),
    TraceSetting: traceSettingsMethod(plane, options),
    ...sharedMemoryMethods(options),
  };
}
