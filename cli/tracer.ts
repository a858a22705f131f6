import type { Logger } from "../telemetry/logger.ts";
import { parseTraceConfig } from "../telemetry/trace-config.ts";
import { startTracer } from "../telemetry/trace-start.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type { Settings } from "./settings.ts";

/** Opens what traces requests as the settings want it. */
export function openTracer(settings: Settings, log: Logger): Promise<Tracer> {
  return startTracer(parseTraceConfig(settings.traceConfig), log);
}
