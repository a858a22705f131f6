import type { Scope } from "../auth/scope.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { GrpcMethodName, HttpPath } from "./api-category.ts";

/** What a call needs: a scope, or nothing where probes without keys are answered. */
export type Need = Scope | "health";

/**
 * The scope of every HTTP path; those of a model stand for the same ones with a version, too. A path that is missing does
 * not compile.
 */
export const httpNeeds = {
  "/v2": "read",
  // Regions are everybody's: who registers one lets all callers read and write there.
  "/v2/cudasharedmemory/register": "admin",
  "/v2/cudasharedmemory/status": "admin",
  "/v2/cudasharedmemory/unregister": "admin",
  "/v2/cudasharedmemory/region/:region/register": "admin",
  "/v2/cudasharedmemory/region/:region/status": "admin",
  "/v2/cudasharedmemory/region/:region/unregister": "admin",
  "/v2/health/live": "health",
  "/v2/health/ready": "health",
  "/v2/jobs": "infer",
  "/v2/jobs/:job": "infer",
  "/v2/jobs/:job/deliveries": "infer",
  "/v2/jobs/:job/events": "infer",
  "/v2/jobs/:job/replay": "infer",
  "/v2/jobs/:job/result": "infer",
  "/v2/logging": "admin",
  "/v2/models/stats": "read",
  "/v2/models/:model": "read",
  "/v2/models/:model/cache/flush": "models",
  "/v2/models/:model/config": "read",
  "/v2/models/:model/generate": "infer",
  "/v2/models/:model/generate_stream": "infer",
  "/v2/models/:model/infer": "infer",
  // Not health: it tells which models there are.
  "/v2/models/:model/ready": "read",
  "/v2/models/:model/stats": "read",
  "/v2/models/:model/trace/setting": "admin",
  "/v2/repository/index": "read",
  "/v2/repository/:repository/index": "read",
  "/v2/repository/models/:model/activate": "models",
  "/v2/repository/models/:model/load": "models",
  "/v2/repository/models/:model/unload": "models",
  "/v2/repository/models/:model/uploads": "models",
  "/v2/repository/models/:model/uploads/:upload": "models",
  "/v2/repository/models/:model/uploads/:upload/commit": "models",
  "/v2/repository/models/:model/uploads/:upload/files/:file/parts/:part": "models",
  "/v2/repository/models/:model/uploads/:upload/parts": "models",
  "/v2/repository/:repository/models/:model/load": "models",
  "/v2/repository/:repository/models/:model/unload": "models",
  "/v2/systemsharedmemory/register": "admin",
  "/v2/systemsharedmemory/status": "admin",
  "/v2/systemsharedmemory/unregister": "admin",
  "/v2/systemsharedmemory/region/:region/register": "admin",
  "/v2/systemsharedmemory/region/:region/status": "admin",
  "/v2/systemsharedmemory/region/:region/unregister": "admin",
  "/v2/trace/setting": "admin",
} as const satisfies Readonly<Record<HttpPath, Need>>;

/** The scope of every gRPC method, likewise. */
export const grpcNeeds = {
  Check: "health",
  Watch: "health",
  ServerLive: "health",
  ServerReady: "health",
  ModelReady: "read",
  ServerMetadata: "read",
  ModelMetadata: "read",
  ModelConfig: "read",
  ModelInfer: "infer",
  ModelStreamInfer: "infer",
  ModelStatistics: "read",
  RepositoryIndex: "read",
  RepositoryModelLoad: "models",
  RepositoryModelUnload: "models",
  SystemSharedMemoryStatus: "admin",
  SystemSharedMemoryRegister: "admin",
  SystemSharedMemoryUnregister: "admin",
  CudaSharedMemoryStatus: "admin",
  CudaSharedMemoryRegister: "admin",
  CudaSharedMemoryUnregister: "admin",
  LogSettings: "admin",
  TraceSetting: "admin",
} as const satisfies Readonly<Record<GrpcMethodName, Need>>;

/** What a gRPC method needs. @param path as in `/inference.GRPCInferenceService/ModelInfer` */
export function methodNeed(path: string): Need {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (isMethod(name)) return grpcNeeds[name];
  throw new InferenceError(StatusCode.PermissionDenied, `method '${name}': nobody may call it`);
}

function isMethod(name: string): name is GrpcMethodName {
  return Object.hasOwn(grpcNeeds, name);
}
