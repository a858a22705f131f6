import { setTimeout as sleep } from "node:timers/promises";
import { diag, DiagLogLevel, SpanKind } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AlwaysOnSampler, BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import type { RequestTrace } from "../protocol/request-trace.ts";
import type { Logger } from "./logger.ts";
import type { CollectorConfig } from "./trace-config.ts";
import { readTraceparent, type TraceContext } from "./trace-context.ts";
import type { TraceScope } from "./trace-scope.ts";
import { EdgeSpans, type ServedSpan } from "./trace-spans.ts";
import type { TraceOutput, TraceResumption, TraceStart } from "./tracer.ts";

/** Traces as spans that are sent to an OpenTelemetry collector. Imported only when that is asked for. */
export class TraceCollector implements TraceOutput {
  readonly #provider: TracerProvider;

  constructor(config: CollectorConfig, log: Logger) {
    reportTrouble(log);
    const processor = new BatchSpanProcessor({
      exporter: new OTLPTraceExporter({ url: config.url }),
      maxQueueSize: config.maxQueueSize,
      scheduledDelayMillis: config.scheduleDelayMilliseconds,
      maxExportBatchSize: config.maxExportBatchSize,
    });
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes(resourceAttributes(config.resource)),
      // Who is traced is decided here, by the settings.
      sampler: new AlwaysOnSampler(),
      spanProcessors: [processor],
    });
  }

  /** A request that belongs to a recorded trace of its caller is always part of it. */
  begin(scope: TraceScope, { traceparent, receivedAt }: TraceStart): RequestTrace | undefined {
    const caller = readTraceparent(traceparent);
    if (!scope.take() && !caller?.sampled) return undefined;
    const kind = SpanKind.SERVER;
    return this.#spans({ name: "InferRequest", kind, startAt: receivedAt }, caller);
  }

  resume({ traceparent, job, startAt }: TraceResumption): RequestTrace | undefined {
    const accepted = readTraceparent(traceparent);
    if (!accepted) return undefined;
    const attributes = { "tidepool.job_id": job };
    return this.#spans(
      { name: "InferJob", kind: SpanKind.CONSUMER, startAt, attributes },
      accepted,
    );
  }

  ended(): void {}

  #spans(served: ServedSpan, above: TraceContext | undefined): EdgeSpans {
    const source = { tracer: this.#provider.getTracer("tidepool"), epoch: epochOfProcess() };
    return new EdgeSpans(source, served, above);
  }

  /** A collector that is away does not keep the server from ending. */
  async close(): Promise<void> {
    const sent = this.#provider.shutdown().catch(ignore);
    await Promise.race([sent, sleep(patienceMilliseconds, undefined, { ref: false })]);
  }
}

function resourceAttributes(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const equals = text.indexOf("=");
    return [text.slice(0, equals), text.slice(equals + 1)];
  });
  return { "service.name": "tidepool", ...Object.fromEntries(pairs) };
}

/** Milliseconds since the epoch at 0 of `performance.now()`; the system's clock may have been set since then. */
function epochOfProcess(): number {
  const { timeOrigin } = performance;
  const wrong = Date.now() - (timeOrigin + performance.now());
  // Date.now() itself counts in whole milliseconds.
  return Math.abs(wrong) > 2 ? timeOrigin + wrong : timeOrigin;
}

/** A collector that is away costs spans and a line in the log, not one for every try. */
function reportTrouble(log: Logger): void {
  let told = 0;
  const tell = (message: string): void => {
    const now = performance.now();
    if (told > 0 && now - told < quietMilliseconds) return;
    told = now;
    log.warn("spans did not reach the collector", { reason: reasonIn(message) });
  };
  const logger = { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** The exporter tells of errors in JSON, with their stacks. */
function reasonIn(text: string): string {
  const reason = /"message":"(?<message>[^"]+)"/u.exec(text)?.groups?.["message"] ?? text;
  return reason.slice(0, longestReason);
}

function ignore(): void {}

const patienceMilliseconds = 3000;
const quietMilliseconds = 60_000;
const longestReason = 500;
