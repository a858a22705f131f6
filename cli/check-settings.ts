import { parseMetricsConfig } from "../telemetry/metrics-config.ts";
import { parseTraceConfig } from "../telemetry/trace-config.ts";
import { asksForKeys, checkAccess, isLoopback } from "./access-settings.ts";
import { parseBackendConfig } from "./backend-config.ts";
import { parseCacheConfig } from "./cache-config.ts";
import { restrictionsOf } from "./restriction.ts";
import { readS3Location } from "./s3-settings.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** Throws for flags that do not go together or hold settings nobody knows, with what to do about it. */
export function checkSettings(settings: Settings): void {
  checkLoadModel(settings);
  checkTls(settings);
  checkAccess(settings);
  checkAddresses(settings);
  checkPorts(settings);
  restrictionsOf("http-restricted-api", settings.httpRestrictedApi);
  restrictionsOf("grpc-restricted-protocol", settings.grpcRestrictedProtocol);
  parseBackendConfig(settings.backendConfig);
  parseMetricsConfig(settings.metricsConfig);
  parseTraceConfig(settings.traceConfig);
  parseCacheConfig(settings.cacheConfig, process.env);
  if (settings.jobStore !== undefined) readS3Location("job-store", settings.jobStore);
}

/** Throws when nothing says where models are. */
export function requireModels({ modelRepository }: Settings): void {
  if (modelRepository.length > 0) return;
  throw new UsageError("--model-repository: given nothing, expected a folder of models, or s3://");
}

function checkLoadModel({ loadModel, modelControlMode }: Settings): void {
  if (loadModel.length === 0) return;
  if (modelControlMode !== "explicit") {
    throw new UsageError(
      `--load-model: given with --model-control-mode=${modelControlMode}, expected explicit`,
    );
  }
  if (loadModel.length > 1 && loadModel.includes("*")) {
    throw new UsageError("--load-model: given '*' and other names, expected '*' alone");
  }
}

function checkTls(settings: Settings): void {
  const { grpcUseSsl, grpcUseSslMutual, grpcServerCert, grpcServerKey, grpcRootCert } = settings;
  if (!grpcUseSsl && !grpcUseSslMutual) return;
  if (grpcServerCert === undefined || grpcServerKey === undefined) {
    throw new UsageError("--grpc-use-ssl: expected --grpc-server-cert and --grpc-server-key, too");
  }
  if (grpcUseSslMutual && grpcRootCert === undefined) {
    throw new UsageError("--grpc-use-ssl-mutual: expected --grpc-root-cert, too");
  }
}

/**
 * Whoever reaches a port that asks for no key may use it: so only this machine reaches it, unless somebody said otherwise.
 * Pool workers and autoscalers ask nobody for a key.
 */
function checkAddresses(settings: Settings): void {
  if (settings.allowAnonymous) return;
  const { allowHttp, allowGrpc, allowMetrics, poolMetricsPort, autoscalerMetricsPort } = settings;
  const keyless = !asksForKeys(settings);
  const metrics = allowMetrics && !settings.metricsAnonymous;
  const others = metrics && (poolMetricsPort !== 0 || autoscalerMetricsPort !== 0);
  const addresses: [flag: string, open: boolean, address: string, how: string][] = [
    ["http-address", keyless && allowHttp, settings.httpAddress, "--allow-anonymous"],
    ["grpc-address", keyless && allowGrpc, settings.grpcAddress, "--allow-anonymous"],
    ["metrics-address", keyless && metrics, metricsAddress(settings), "--allow-anonymous"],
    ["metrics-address", others, metricsAddress(settings), "--metrics-anonymous"],
  ];
  for (const [flag, open, address, how] of addresses) {
    if (!open || isLoopback(address)) continue;
    throw new UsageError(
      `--${flag}: given ${address}, where other machines may call without a key; ` +
        `ask for one by --api-keys, add ${how} if that is wanted, or give 127.0.0.1`,
    );
  }
}

/** Two endpoints cannot share a port; where ports are reused, the system would even let them, and mix their callers. */
function checkPorts(settings: Settings): void {
  const endpoints: [flag: string, served: boolean, address: string, port: number][] = [
    ["http-port", settings.allowHttp, settings.httpAddress, settings.httpPort],
    ["grpc-port", settings.allowGrpc, settings.grpcAddress, settings.grpcPort],
    ["metrics-port", settings.allowMetrics, metricsAddress(settings), settings.metricsPort],
  ];
  const taken = new Map<string, string>();
  for (const [flag, served, address, port] of endpoints) {
    if (!served || port === 0) continue;
    const other = taken.get(`${address} ${port}`);
    if (other !== undefined) {
      throw new UsageError(`--${flag}: given ${port}, which is --${other}, too; expected another`);
    }
    taken.set(`${address} ${port}`, flag);
  }
}

/** Where the metrics are served: beside HTTP unless told otherwise. */
export function metricsAddress(settings: Settings): string {
  return settings.metricsAddress ?? settings.httpAddress;
}
