import type { Logger } from "./logger.ts";
import type { TraceConfig } from "./trace-config.ts";
import { TraceFiles } from "./trace-files.ts";
import { Tracer } from "./tracer.ts";

/** Makes the tracer that a config asks for. What speaks to collectors is loaded only where one is to be spoken to. */
export async function startTracer(config: TraceConfig, log: Logger): Promise<Tracer> {
  if (config.mode === "triton") return new Tracer(config, new TraceFiles(config.file, log));
  const { TraceCollector } = await import("./trace-collector.ts");
  return new Tracer(config, new TraceCollector(config.collector, log));
}
