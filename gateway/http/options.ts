import type { HeaderFilter } from "../header-filter.ts";
import type { LogSettings } from "../../telemetry/log-settings.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import type { Access } from "../access.ts";
import type { Admission } from "../admission.ts";
import type { AuditTrail } from "../audit-trail.ts";
import type { Restrictions } from "../restrictions.ts";
import type { SharedMemoryRegions } from "../shared-memory/regions.ts";

/** What the HTTP side is told by the command line. */
export interface HttpOptions {
  /** `--http-max-input-size`: the largest body a request may have, before and after decompression. */
  readonly maxInputBytes: number;
  /** `--http-header-forward-pattern`: headers whose name it finds become parameters of the request. */
  readonly headerForwardPattern?: HeaderFilter;
  /** `--http-restricted-api`: parts of the API that ask for a header; none by default. */
  readonly restrictions?: Restrictions;
  /** Without it nobody is asked for a key. */
  readonly access?: Access;
  /** Told of every change; without it nobody is. */
  readonly audit?: AuditTrail;
  /** Shared with gRPC; without it every call is let in. */
  readonly admission?: Admission;
  /** Shared with gRPC; without it nobody can register any. */
  readonly sharedMemory?: SharedMemoryRegions;
  /** Without it nothing is traced, and nobody can ask for it. */
  readonly tracer?: Tracer;
  readonly log: Logger;
  readonly logSettings: LogSettings;
}
