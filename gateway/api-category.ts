/** The parts of the API that can be restricted one by one; the command line names them so. */
export const apiCategories = [
  "health",
  "metadata",
  "inference",
  "shared-memory",
  "model-config",
  "model-repository",
  "statistics",
  "trace",
  "logging",
] as const;
export type ApiCategory = (typeof apiCategories)[number];

/** The category of every HTTP path; those of a model stand for the same ones with a version, too. */
export const httpCategories = {
  "/v2": "metadata",
  "/v2/health/live": "health",
  "/v2/health/ready": "health",
  "/v2/jobs": "inference",
  "/v2/jobs/:job": "inference",
  "/v2/jobs/:job/events": "inference",
  "/v2/jobs/:job/replay": "inference",
  "/v2/jobs/:job/result": "inference",
  "/v2/logging": "logging",
  "/v2/models/stats": "statistics",
  "/v2/models/:model": "metadata",
  "/v2/models/:model/config": "model-config",
  "/v2/models/:model/generate": "inference",
  "/v2/models/:model/generate_stream": "inference",
  "/v2/models/:model/infer": "inference",
  "/v2/models/:model/ready": "health",
  "/v2/models/:model/stats": "statistics",
  "/v2/repository/index": "model-repository",
  "/v2/repository/:repository/index": "model-repository",
  "/v2/repository/models/:model/load": "model-repository",
  "/v2/repository/models/:model/unload": "model-repository",
  "/v2/repository/:repository/models/:model/load": "model-repository",
  "/v2/repository/:repository/models/:model/unload": "model-repository",
} as const satisfies Readonly<Record<string, ApiCategory>>;
export type HttpPath = keyof typeof httpCategories;

/** The category of every gRPC method; `Check` and `Watch` are those of `grpc.health.v1.Health`. */
export const grpcCategories = {
  Check: "health",
  Watch: "health",
  ServerLive: "health",
  ServerReady: "health",
  ModelReady: "health",
  ServerMetadata: "metadata",
  ModelMetadata: "metadata",
  ModelConfig: "model-config",
  ModelInfer: "inference",
  ModelStreamInfer: "inference",
  ModelStatistics: "statistics",
  RepositoryIndex: "model-repository",
  RepositoryModelLoad: "model-repository",
  RepositoryModelUnload: "model-repository",
  LogSettings: "logging",
} as const satisfies Readonly<Record<string, ApiCategory>>;
export type GrpcMethodName = keyof typeof grpcCategories;
