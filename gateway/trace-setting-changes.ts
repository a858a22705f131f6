import { InferenceError, invalidArgument, StatusCode } from "../protocol/error.ts";
import type { CollectorConfig } from "../telemetry/trace-config.ts";
import type { TraceSettingChanges } from "../telemetry/trace-settings.ts";
import type { TraceLevel } from "../telemetry/trace-values.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import type { DataPlane } from "./data-plane.ts";

/** The settings of one request, read from its wire; null takes a setting back, undefined leaves it as it is. */
export interface GivenTraceSettings {
  has(name: string): boolean;
  /** Throws for values of another type. */
  texts(name: string): readonly string[] | null | undefined;
  /** The same for a setting that has one value only. */
  text(name: string): string | null | undefined;
  /** How the reference's complaint about a count begins its last part on this wire. */
  readonly countGot: string;
}

type Changes = { -readonly [Name in keyof TraceSettingChanges]: TraceSettingChanges[Name] };

const largestUnsigned = 2 ** 32 - 1;
const largestCount = 2 ** 31 - 1;

/** Throws UNSUPPORTED where nothing can be traced. */
export function requiredTracer(tracer: Tracer | undefined): Tracer {
  if (tracer) return tracer;
  throw new InferenceError(StatusCode.Unsupported, "the server does not support tracing");
}

/** Throws INVALID_ARG for a model that does not answer; "" stands for all models. */
export async function checkTracedModel(plane: DataPlane, model: string): Promise<void> {
  if (model === "" || (await plane.modelReady(model, ""))) return;
  throw invalidArgument(`Request for unknown model : ${model}`);
}

/** The changes that a client asks for: all of them, or it throws. Settings that nobody knows are ignored. */
export function traceSettingChanges(given: GivenTraceSettings): TraceSettingChanges {
  if (given.has("trace_file")) {
    throw new InferenceError(
      StatusCode.Unsupported,
      "trace file location can not be updated through network protocol",
    );
  }
  const changes: Changes = {};
  const level = levelOf(given.texts("trace_level"));
  if (level !== undefined) changes.level = level;
  const rate = number(given, "trace_rate", 0, largestUnsigned);
  if (rate !== undefined) changes.rate = rate;
  const count = number(given, "trace_count", -1, largestCount);
  if (count !== undefined) changes.count = count;
  const logFrequency = number(given, "log_frequency", 0, largestUnsigned);
  if (logFrequency !== undefined) changes.logFrequency = logFrequency;
  return changes;
}

/** The settings by the names that they have on both wires; only `trace_level` may have more than one value. */
export function traceSettingFields(
  tracer: Tracer,
  model: string,
): Readonly<Record<string, readonly string[]>> {
  const { mode, file, collector } = tracer.config;
  const { level, rate, count, logFrequency } = tracer.values(model);
  return {
    trace_level: levelNames(level),
    trace_rate: [String(rate)],
    trace_count: [String(count)],
    ...(mode === "triton" && { log_frequency: [String(logFrequency)], trace_file: [file] }),
    trace_mode: [mode],
    ...(mode === "opentelemetry" && collectorFields(collector)),
  };
}

function collectorFields(config: CollectorConfig): Readonly<Record<string, readonly string[]>> {
  const { url, resource, maxQueueSize, scheduleDelayMilliseconds, maxExportBatchSize } = config;
  return {
    url: [url],
    ...(resource.length > 0 && { resource: [resource.join(",")] }),
    bsp_schedule_delay: [String(scheduleDelayMilliseconds)],
    bsp_max_export_batch_size: [String(maxExportBatchSize)],
    bsp_max_queue_size: [String(maxQueueSize)],
  };
}

function levelOf(texts: readonly string[] | null | undefined): TraceLevel | null | undefined {
  if (!texts) return texts;
  if (texts.includes("OFF") && texts.length > 1) {
    throw invalidArgument("Expect only one trace level 'OFF' is specified");
  }
  // As with the reference, words that nobody knows change nothing.
  if (!texts.some((text) => /^(?:OFF|TIMESTAMPS|TENSORS)$/u.test(text))) return undefined;
  return { timestamps: texts.includes("TIMESTAMPS"), tensors: texts.includes("TENSORS") };
}

function levelNames(level: TraceLevel): readonly string[] {
  const { timestamps, tensors } = level;
  const names = [...(timestamps ? ["TIMESTAMPS"] : []), ...(tensors ? ["TENSORS"] : [])];
  return names.length > 0 ? names : ["OFF"];
}

function number(
  given: GivenTraceSettings,
  name: string,
  least: number,
  most: number,
): number | null | undefined {
  const text = given.text(name);
  if (text === undefined || text === null) return text;
  if (!/^-?\d+$/u.test(text)) throw invalidArgument(`Unable to parse '${name}', got: ${text}`);
  const value = Number(text);
  if (value >= least && value <= most) return value;
  if (least === -1 && value < least) {
    const got = `${given.countGot}${text}`;
    throw invalidArgument(`Unable to parse '${name}'. Expecting value >= -1, ${got}`);
  }
  throw invalidArgument(
    `Unable to parse '${name}', value is out of range [ ${least}, ${most} ], got: ${text}`,
  );
}
