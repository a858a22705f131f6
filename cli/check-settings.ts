import { parseMetricsConfig } from "../telemetry/metrics-config.ts";
import { parseTraceConfig } from "../telemetry/trace-config.ts";
import { asksForKeys, checkAccess, isLoopback } from "./access-settings.ts";
import { parseBackendConfig } from "./backend-config.ts";
import { parseCacheConfig } from "./cache-config.ts";
import { checkCrossOrigin } from "./cross-origin.ts";
import { restrictionsOf } from "./restriction.ts";
import { readS3Location } from "./s3-settings.ts";
import type { Settings } from "./settings.ts";
import { checkTls } from "./tls.ts";
import { UsageError } from "./usage-error.ts";

/** Throws for flags that do not go together or hold settings nobody knows, with what to do about it. */
export function checkSettings(settings: Settings): void {
  checkLoadModel(settings);
  checkTls(settings);
  checkCrossOrigin(settings);
  checkAccess(settings);
  checkAddresses(settings);
  checkKeda(settings);
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

/**
 * Whoever reaches a port that asks for no key may use it: so only this machine reaches it, unless somebody said otherwise.
 */
function checkAddresses(settings: Settings): void {
  if (settings.allowAnonymous) return;
  const { allowHttp, allowGrpc, allowMetrics } = settings;
  const keyless = !asksForKeys(settings);
  const metrics = allowMetrics && !settings.metricsAnonymous;
  const addresses: [flag: string, open: boolean, address: string][] = [
    ["http-address", keyless && allowHttp, settings.httpAddress],
    ["grpc-address", keyless && allowGrpc, settings.grpcAddress],
    ["metrics-address", keyless && metrics, metricsAddress(settings)],
  ];
  for (const [flag, open, address] of addresses) {
    if (!open || isLoopback(address)) continue;
    throw new UsageError(
      `--${flag}: given ${address}, where other machines may call without a key; ` +
        "ask for one by --api-keys, add --allow-anonymous if that is wanted, or give 127.0.0.1",
    );
  }
}

/** KEDA has no keys, but it may have a certificate. */
function checkKeda(settings: Settings): void {
  const { allowKeda, kedaAddress, kedaServerCert, kedaServerKey, kedaRootCert } = settings;
  if (!allowKeda) return;
  const encrypted = kedaServerCert !== undefined && kedaServerKey !== undefined;
  const halfway = kedaServerCert ?? kedaServerKey ?? kedaRootCert;
  if (!encrypted && halfway !== undefined) {
    throw new UsageError("--keda-server-cert: expected it and --keda-server-key together");
  }
  const anybody = kedaRootCert === undefined && !settings.kedaAnonymous && !settings.allowAnonymous;
  if (!anybody || isLoopback(kedaAddress)) return;
  throw new UsageError(
    `--keda-address: given ${kedaAddress}, where other machines may ask without a certificate; ` +
      "ask for one by --keda-root-cert, add --keda-anonymous if that is wanted, or give 127.0.0.1",
  );
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
