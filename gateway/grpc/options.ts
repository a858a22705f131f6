import type { ChannelOptions } from "@grpc/grpc-js";
import type { Logger } from "../../telemetry/logger.ts";
import type { LogSettings } from "../../telemetry/log-settings.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import type { Access } from "../access.ts";
import type { Admission } from "../admission.ts";
import type { AuditTrail } from "../audit-trail.ts";
import type { HeaderFilter } from "../header-filter.ts";
import type { Restrictions } from "../restrictions.ts";
import type { SharedMemoryRegions } from "../shared-memory/regions.ts";
import type { PortTls } from "../tls/secure-server.ts";
import { largestMessageBytes } from "./encode-response.ts";

/** What the command line says about the gRPC server. */
export interface GrpcOptions {
  readonly log: Logger;
  readonly logSettings: LogSettings;
  /** Without it connections are not encrypted. */
  readonly tls?: PortTls;
  /** @defaultValue 10_000 */
  readonly maxConnections?: number;
  /** Request headers with a match anywhere in their name become request parameters. */
  readonly headerForwardPattern?: HeaderFilter;
  readonly keepalive?: GrpcKeepalive;
  /** `--grpc-restricted-protocol`: parts of the API that ask for metadata; none by default. */
  readonly restrictions?: Restrictions;
  /** Without it nobody is asked for a key. */
  readonly access?: Access;
  /** Shared with HTTP; without it every call is let in. */
  readonly admission?: Admission;
  /** Told of every change; without it nobody is. */
  readonly audit?: AuditTrail;
  /** Shared with HTTP; without it nobody can register any. */
  readonly sharedMemory?: SharedMemoryRegions;
  /** Without it nothing is traced, and nobody can ask for it. */
  readonly tracer?: Tracer;
}

/** The `--grpc-keepalive-…` and `--grpc-max-connection-age…` flags, in milliseconds; absent ones keep the defaults. */
export interface GrpcKeepalive {
  /** Between pings on a connection; 2 hours by default. */
  readonly timeMs?: number;
  /** For the answer to a ping; 20 seconds by default. */
  readonly timeoutMs?: number;
  /** After so long a connection takes no new call; no bound by default. */
  readonly maxConnectionAgeMs?: number;
  /** So long may calls on such a connection run on; no bound by default. */
  readonly maxConnectionAgeGraceMs?: number;
}

const longestTimer = 2 ** 31 - 1;

/** The settings of grpc-js for these options. */
export function channelOptions({ keepalive = {} }: GrpcOptions): ChannelOptions {
  return {
    "grpc.max_receive_message_length": largestMessageBytes,
    "grpc.max_send_message_length": largestMessageBytes,
    "grpc.enable_channelz": 0,
    "grpc.keepalive_time_ms": timer(keepalive.timeMs ?? 7_200_000),
    "grpc.keepalive_timeout_ms": timer(keepalive.timeoutMs ?? 20_000),
    ...(keepalive.maxConnectionAgeMs && {
      "grpc.max_connection_age_ms": timer(keepalive.maxConnectionAgeMs),
    }),
    ...(keepalive.maxConnectionAgeGraceMs && {
      "grpc.max_connection_age_grace_ms": timer(keepalive.maxConnectionAgeGraceMs),
    }),
  };
}

/** What a timer can hold; longer ones would end at once. */
function timer(milliseconds: number): number {
  return Math.min(milliseconds, longestTimer);
}
