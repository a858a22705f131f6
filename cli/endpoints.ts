import type { Access } from "../gateway/access.ts";
import type { Admission } from "../gateway/admission.ts";
import type { AuditTrail } from "../gateway/audit-trail.ts";
import type { DataPlane } from "../gateway/data-plane.ts";
import type { GrpcOptions } from "../gateway/grpc/options.ts";
import { createGrpcServer } from "../gateway/grpc/server.ts";
import { type HeaderFilter, withoutCredentials } from "../gateway/header-filter.ts";
import { createHttpApp } from "../gateway/http/app.ts";
import { listenHttp } from "../gateway/http/server.ts";
import { listenMetrics } from "../gateway/metrics-server.ts";
import { SharedMemoryRegions } from "../gateway/shared-memory/regions.ts";
import type { ServerLog } from "../telemetry/logger.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { metricsAddress } from "./check-settings.ts";
import { crossOriginOf } from "./cross-origin.ts";
import { restrictionsOf } from "./restriction.ts";
import type { Settings } from "./settings.ts";
import type { TlsPorts } from "./tls.ts";
import { UsageError } from "./usage-error.ts";

/** An open port. */
export interface Endpoint {
  readonly name: "http" | "grpc" | "metrics";
  /** As in `127.0.0.1:8000`. */
  readonly address: string;
  /** Takes nothing new, ends what is open; cuts off what is left when the signal comes. */
  close(signal: AbortSignal): Promise<void>;
}

/** What is behind the ports. */
export interface Served {
  readonly plane: DataPlane;
  readonly log: ServerLog;
  readonly tracer: Tracer;
  /** Without it nobody is asked for a key. */
  readonly access: Access | undefined;
  readonly admission: Admission;
  readonly tls: TlsPorts;
  readonly audit: AuditTrail;
  /** Gives the text that a scrape reads. */
  readonly metrics: () => Promise<string>;
}

interface Listening {
  readonly port: number;
  close(signal: AbortSignal): Promise<void>;
}

/** Opens every port that the settings want. Throws a UsageError that names the flag when an address cannot be had. */
export async function openEndpoints(
  settings: Settings,
  { metrics, ...shared }: Served,
): Promise<readonly Endpoint[]> {
  const { allowHttp, allowGrpc, allowMetrics, httpAddress, grpcAddress } = settings;
  const endpoints: Endpoint[] = [];
  const parts = { ...shared, sharedMemory: new SharedMemoryRegions(settings.allowClientShm) };
  if (allowHttp) {
    const http = () => openHttp(settings, parts);
    endpoints.push(await open("http", httpAddress, settings.httpPort, http));
  }
  if (allowGrpc) {
    const grpc = () => openGrpc(settings, parts);
    endpoints.push(await open("grpc", grpcAddress, settings.grpcPort, grpc));
  }
  if (allowMetrics) {
    const host = metricsAddress(settings);
    const listen = () =>
      listenMetrics({
        host,
        port: settings.metricsPort,
        text: metrics,
        health: shared.plane,
        ...(shared.tls.metrics && { tls: shared.tls.metrics }),
        ...(shared.access && !settings.metricsAnonymous && { access: shared.access }),
      });
    endpoints.push(await open("metrics", host, settings.metricsPort, listen));
  }
  return endpoints;
}

async function open(
  name: Endpoint["name"],
  host: string,
  port: number,
  listen: () => Promise<Listening>,
): Promise<Endpoint> {
  try {
    const listening = await listen();
    return {
      name,
      address: `${host.includes(":") ? `[${host}]` : host}:${listening.port}`,
      close: (signal) => listening.close(signal),
    };
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const flags = `--${name}-address and --${name}-port`;
    throw new UsageError(`${flags}: given ${host} and ${port}, ${reason}`, { cause });
  }
}

/** What both transports are given. */
interface TransportParts extends Omit<Served, "metrics"> {
  readonly sharedMemory: SharedMemoryRegions;
}

function openHttp(
  settings: Settings,
  { plane, log, tracer, sharedMemory, access, admission, tls, audit }: TransportParts,
): Promise<Listening> {
  const app = createHttpApp(plane, {
    maxInputBytes: settings.httpMaxInputSize,
    ...forwarding(settings.httpHeaderForwardPattern, access),
    ...(access && { access }),
    admission,
    audit,
    restrictions: restrictionsOf("http-restricted-api", settings.httpRestrictedApi),
    sharedMemory,
    tracer,
    log,
    logSettings: log,
  });
  const crossOrigin = crossOriginOf(settings);
  return listenHttp(app, {
    host: settings.httpAddress,
    port: settings.httpPort,
    reusePort: settings.reuseHttpPort,
    requestMilliseconds: settings.httpRequestTimeoutSecs * 1000,
    bounds: {
      keepAliveMilliseconds: settings.httpKeepAliveTimeoutSecs * 1000,
      maxRequests: settings.httpMaxConnectionRequests ?? Infinity,
      maxConnections: settings.httpMaxConnections,
    },
    ...(tls.http && { tls: tls.http }),
    ...(crossOrigin && { crossOrigin }),
  });
}

async function openGrpc(
  settings: Settings,
  { plane, log, tracer, sharedMemory, access, admission, tls, audit }: TransportParts,
): Promise<Listening> {
  const options = {
    admission,
    audit,
    ...grpcOptions(settings, log),
    ...(tls.grpc && { tls: tls.grpc }),
    ...forwarding(settings.grpcHeaderForwardPattern, access),
    ...(access && { access }),
  };
  const server = createGrpcServer(plane, { ...options, sharedMemory, tracer });
  const port = await server.listen({
    host: settings.grpcAddress,
    port: settings.grpcPort,
    reusePort: settings.reuseGrpcPort,
  });
  return { port, close: (signal) => server.close(signal) };
}

function grpcOptions(settings: Settings, log: ServerLog): GrpcOptions {
  const { grpcMaxConnectionAge: age, grpcMaxConnectionAgeGrace: grace } = settings;
  return {
    log,
    logSettings: log,
    restrictions: restrictionsOf("grpc-restricted-protocol", settings.grpcRestrictedProtocol),
    maxConnections: settings.grpcMaxConnections,
    keepalive: {
      timeMs: settings.grpcKeepaliveTime,
      timeoutMs: settings.grpcKeepaliveTimeout,
      ...(age !== undefined && { maxConnectionAgeMs: age }),
      ...(grace !== undefined && { maxConnectionAgeGraceMs: grace }),
    },
  };
}

function forwarding(
  pattern: string,
  access: Access | undefined,
): { readonly headerForwardPattern?: HeaderFilter } {
  if (pattern === "") return {};
  const all = new RegExp(pattern, "u");
  return { headerForwardPattern: access ? withoutCredentials(all) : all };
}
