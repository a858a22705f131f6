import { CertificateFiles } from "../gateway/tls/certificate-files.ts";
import type { CertificatePaths } from "../gateway/tls/find-certificate.ts";
import type { PortTls } from "../gateway/tls/secure-server.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { MetricFamily } from "../telemetry/metric-family.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** What the ports are secured with; a port that is not named is not encrypted. */
export interface TlsPorts {
  readonly http?: PortTls;
  readonly grpc?: PortTls;
  readonly metrics?: PortTls;
}

const commonFlags = "--tls-cert, --tls-key, --tls-client-ca";
const grpcFlags = "--grpc-server-cert, --grpc-server-key, --grpc-root-cert";
const kedaFlags = "--keda-server-cert, --keda-server-key, --keda-root-cert";

/**
 * Reads the certificates that the settings name, and follows their files for as long as the process lives. Triton's flags
 * are for gRPC alone, where they count before those for all ports. Throws a UsageError that names flags and file.
 */
export async function openTls(settings: Settings, log: Logger): Promise<TlsPorts> {
  const all = await open(commonPaths(settings), commonFlags, log);
  const grpc = (await open(grpcPaths(settings), grpcFlags, log)) ?? all;
  return {
    ...(all && { http: all }),
    ...(grpc && { grpc }),
    ...(all && settings.metricsTls && { metrics: all }),
  };
}

/** The same for a process that has a port for metrics only. */
export async function openMetricsTls(
  settings: Settings,
  log: Logger,
): Promise<PortTls | undefined> {
  return settings.metricsTls ? open(commonPaths(settings), commonFlags, log) : undefined;
}

/** The same for the port that KEDA asks. */
export async function openKedaTls(settings: Settings, log: Logger): Promise<PortTls | undefined> {
  const { kedaServerCert: certificate, kedaServerKey: key, kedaRootCert } = settings;
  if (certificate === undefined || key === undefined) return undefined;
  return open(pathsOf(certificate, key, kedaRootCert), kedaFlags, log);
}

/** Throws for flags about certificates that do not go together. */
export function checkTls(settings: Settings): void {
  const { tlsCert, tlsKey, tlsClientCa } = settings;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new UsageError("--tls-cert, --tls-key: given one of them, expected both");
  }
  if (tlsClientCa !== undefined && tlsCert === undefined) {
    throw new UsageError("--tls-client-ca: expected --tls-cert and --tls-key, too");
  }
  const { grpcUseSsl, grpcUseSslMutual, grpcServerCert, grpcServerKey, grpcRootCert } = settings;
  if (!grpcUseSsl && !grpcUseSslMutual) return;
  if (grpcServerCert === undefined || grpcServerKey === undefined) {
    throw new UsageError("--grpc-use-ssl: expected --grpc-server-cert and --grpc-server-key, too");
  }
  if (grpcUseSslMutual && grpcRootCert === undefined) {
    throw new UsageError("--grpc-use-ssl-mutual: expected --grpc-root-cert, too");
  }
}

/** When the certificates end, for who watches that they are renewed. */
export function certificateMetrics(ports: TlsPorts): readonly MetricFamily[] {
  const samples = Object.entries<PortTls>({ ...ports }).map(([port, { certificate }]) => ({
    labels: { port },
    value: certificate.notAfter / 1000,
  }));
  if (samples.length === 0) return [];
  const help = "When the port's certificate ends, in seconds since the epoch";
  return [{ name: "tidepool_tls_certificate_not_after_seconds", help, type: "gauge", samples }];
}

function commonPaths({ tlsCert, tlsKey, tlsClientCa }: Settings): CertificatePaths | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  return pathsOf(tlsCert, tlsKey, tlsClientCa);
}

function grpcPaths(settings: Settings): CertificatePaths | undefined {
  const { grpcServerCert: certificate = "", grpcServerKey: key = "", grpcRootCert } = settings;
  if (settings.grpcUseSslMutual && grpcRootCert !== undefined) {
    return { certificate, key, clientAuthority: grpcRootCert };
  }
  return settings.grpcUseSsl ? { certificate, key } : undefined;
}

function pathsOf(
  certificate: string,
  key: string,
  clientAuthority: string | undefined,
): CertificatePaths {
  return { certificate, key, ...(clientAuthority !== undefined && { clientAuthority }) };
}

async function open(
  paths: CertificatePaths | undefined,
  flags: string,
  log: Logger,
): Promise<PortTls | undefined> {
  if (!paths) return undefined;
  try {
    return { certificate: await CertificateFiles.open({ paths, log }), log };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`${flags}: ${reason}`, { cause });
  }
}
