import type { AuditAction } from "../telemetry/audit-log.ts";
import type { HttpPath } from "./api-category.ts";
import type { grpcNeeds, httpNeeds, Need } from "./policy.ts";

/** Those of a table of needs whose callers may change something. */
type Changing<Needs extends Readonly<Record<string, Need>>> = {
  [Name in keyof Needs]: Needs[Name] extends "models" | "admin" ? Name : never;
}[keyof Needs];

/**
 * What calls of an HTTP path change, unless they are GET; null where they only show something. A path that asks for
 * scope `models` or `admin` and is missing does not compile.
 */
const httpChanges = {
  "/v2/cudasharedmemory/register": "shared-memory.register",
  "/v2/cudasharedmemory/status": null,
  "/v2/cudasharedmemory/unregister": "shared-memory.unregister",
  "/v2/cudasharedmemory/region/:region/register": "shared-memory.register",
  "/v2/cudasharedmemory/region/:region/status": null,
  "/v2/cudasharedmemory/region/:region/unregister": "shared-memory.unregister",
  "/v2/logging": "log.update",
  "/v2/models/:model/cache/flush": "cache.flush",
  "/v2/models/:model/trace/setting": "trace.update",
  "/v2/repository/models/:model/activate": "model.load",
  "/v2/repository/models/:model/load": "model.load",
  "/v2/repository/models/:model/unload": "model.unload",
  "/v2/repository/models/:model/uploads": "model.push",
  "/v2/repository/models/:model/uploads/:upload": "model.push",
  "/v2/repository/models/:model/uploads/:upload/commit": "model.push",
  // Nothing of a part is seen before the commit.
  "/v2/repository/models/:model/uploads/:upload/files/:file/parts/:part": null,
  "/v2/repository/models/:model/uploads/:upload/parts": null,
  "/v2/repository/:repository/models/:model/load": "model.load",
  "/v2/repository/:repository/models/:model/unload": "model.unload",
  "/v2/systemsharedmemory/register": "shared-memory.register",
  "/v2/systemsharedmemory/status": null,
  "/v2/systemsharedmemory/unregister": "shared-memory.unregister",
  "/v2/systemsharedmemory/region/:region/register": "shared-memory.register",
  "/v2/systemsharedmemory/region/:region/status": null,
  "/v2/systemsharedmemory/region/:region/unregister": "shared-memory.unregister",
  "/v2/trace/setting": "trace.update",
} as const satisfies Readonly<Record<Changing<typeof httpNeeds>, AuditAction | null>>;

/** The same of gRPC methods. */
const grpcChanges = {
  RepositoryModelLoad: "model.load",
  RepositoryModelUnload: "model.unload",
  SystemSharedMemoryStatus: null,
  SystemSharedMemoryRegister: "shared-memory.register",
  SystemSharedMemoryUnregister: "shared-memory.unregister",
  CudaSharedMemoryStatus: null,
  CudaSharedMemoryRegister: "shared-memory.register",
  CudaSharedMemoryUnregister: "shared-memory.unregister",
  LogSettings: "log.update",
  TraceSetting: "trace.update",
} as const satisfies Readonly<Record<Changing<typeof grpcNeeds>, AuditAction | null>>;

const byPath: Readonly<Partial<Record<HttpPath, AuditAction | null>>> = httpChanges;
const byMethod: ReadonlyMap<string, AuditAction | null> = new Map(Object.entries(grpcChanges));

/** What the calls of a path change, if anything. */
export function changeOfPath(path: HttpPath): AuditAction | undefined {
  return byPath[path] ?? undefined;
}

/** The same of a method. @param path as in `/inference.GRPCInferenceService/LogSettings` */
export function changeOfMethod(path: string): AuditAction | undefined {
  return byMethod.get(path.slice(path.lastIndexOf("/") + 1)) ?? undefined;
}
