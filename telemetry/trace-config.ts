import { InferenceError, StatusCode } from "../protocol/error.ts";
import { isOn, type TraceLevel, traceOff, type TraceSettingValues } from "./trace-values.ts";

/** Files of the reference's format, or spans that are sent to a collector. */
export type TraceMode = "triton" | "opentelemetry";

/** What `--trace-config` says. */
export interface TraceConfig {
  readonly mode: TraceMode;
  readonly values: TraceSettingValues;
  /** "" when none was given. */
  readonly file: string;
  readonly collector: CollectorConfig;
}

/** Where spans are sent, and how. */
export interface CollectorConfig {
  readonly url: string;
  /** Attributes of the resource, as `<key>=<value>`. */
  readonly resource: readonly string[];
  /** Spans that wait to be sent; further ones are lost. */
  readonly maxQueueSize: number;
  readonly scheduleDelayMilliseconds: number;
  readonly maxExportBatchSize: number;
}

export const defaultTraceConfig: TraceConfig = {
  mode: "triton",
  values: { level: traceOff, rate: 1000, count: -1, logFrequency: 0 },
  file: "",
  collector: {
    url: "http://localhost:4318/v1/traces",
    resource: [],
    maxQueueSize: 2048,
    scheduleDelayMilliseconds: 5000,
    maxExportBatchSize: 512,
  },
};

/**
 * Reads settings written `<setting>=<value>` or `<mode>,<setting>=<value>`. Of a setting the last value wins, but levels
 * and attributes add up, and a level of OFF is the last word. Throws an INVALID_ARG for anything else.
 */
export function parseTraceConfig(settings: readonly string[]): TraceConfig {
  const read = settings.reduce(readSetting, defaultTraceConfig);
  const off = settings.some((setting) => /^level=(?:off|false)$/iu.test(setting));
  const config = off ? withValues(read, { level: traceOff }) : read;
  if (isOn(config.values.level) && config.mode === "triton" && config.file === "") {
    throw refused("level", "triton,file=<path> or mode=opentelemetry, too");
  }
  return config;
}

function readSetting(config: TraceConfig, setting: string): TraceConfig {
  const parts = /^(?:(?<mode>[^,=]+),)?(?<name>[^,=]+)=(?<value>.+)$/su.exec(setting);
  if (!parts) throw refused(setting, "[<mode>,]<setting>=<value>");
  const [, mode = "", name = "", value = ""] = parts;
  const read = readers[`${mode.toLowerCase()},${name}`];
  if (!read) throw refused(setting, `one of ${knownSettings}`);
  return read(config, value, setting);
}

/** Takes one value into the config; `setting` is the whole text, for complaints. */
type Reader = (config: TraceConfig, value: string, setting: string) => TraceConfig;

const largest = 2 ** 32 - 1;

const readers: Readonly<Record<string, Reader>> = {
  ",level": (config, value, setting) =>
    withValues(config, { level: joined(config.values.level, levelOf(value, setting)) }),
  ",rate": (config, value, setting) =>
    withValues(config, { rate: integer(value, setting, 0, largest) }),
  ",count": (config, value, setting) =>
    withValues(config, { count: integer(value, setting, -1, 2 ** 31 - 1) }),
  ",mode": (config, value, setting) => ({ ...config, mode: modeOf(value, setting) }),
  "triton,file": (config, file) => ({ ...config, file }),
  "triton,log-frequency": (config, value, setting) =>
    withValues(config, { logFrequency: integer(value, setting, 0, largest) }),
  "opentelemetry,url": (config, value, setting) =>
    withCollector(config, { url: collectorUrl(value, setting) }),
  "opentelemetry,resource": (config, value, setting) => {
    if (!/^[^=]+=/u.test(value)) throw refused(setting, "resource=<key>=<value>");
    return withCollector(config, { resource: [...config.collector.resource, value] });
  },
  "opentelemetry,bsp_max_queue_size": (config, value, setting) =>
    withCollector(config, { maxQueueSize: integer(value, setting, 1, 1_000_000) }),
  "opentelemetry,bsp_schedule_delay": (config, value, setting) =>
    withCollector(config, { scheduleDelayMilliseconds: integer(value, setting, 1, 3_600_000) }),
  "opentelemetry,bsp_max_export_batch_size": (config, value, setting) =>
    withCollector(config, { maxExportBatchSize: integer(value, setting, 1, 1_000_000) }),
};

const knownSettings = Object.keys(readers)
  .map((key) => key.replace(/^,/u, ""))
  .join("; ");

function withValues(config: TraceConfig, values: Partial<TraceSettingValues>): TraceConfig {
  return { ...config, values: { ...config.values, ...values } };
}

function withCollector(config: TraceConfig, collector: Partial<CollectorConfig>): TraceConfig {
  return { ...config, collector: { ...config.collector, ...collector } };
}

function levelOf(value: string, setting: string): TraceLevel {
  if (/^(?:off|false)$/iu.test(value)) return traceOff;
  if (/^(?:timestamps|true|on|min|max)$/iu.test(value)) return { ...traceOff, timestamps: true };
  if (/^tensors$/iu.test(value)) return { ...traceOff, tensors: true };
  throw refused(setting, "OFF, TIMESTAMPS or TENSORS");
}

function joined(one: TraceLevel, other: TraceLevel): TraceLevel {
  return {
    timestamps: one.timestamps || other.timestamps,
    tensors: one.tensors || other.tensors,
  };
}

function modeOf(value: string, setting: string): TraceMode {
  const mode = value.toLowerCase();
  if (mode === "triton" || mode === "opentelemetry") return mode;
  throw refused(setting, "triton or opentelemetry");
}

function integer(text: string, setting: string, least: number, most: number): number {
  const value = Number(text);
  if (/^-?\d+$/u.test(text) && value >= least && value <= most) return value;
  throw refused(setting, `an integer from ${least} to ${most}`);
}

/** Clients are shown the address, so that it must not say who may use it. */
function collectorUrl(value: string, setting: string): string {
  const url = URL.parse(value);
  if (!url || !/^https?:$/u.test(url.protocol)) throw refused(setting, "an http or https URL");
  if (url.username === "" && url.password === "" && url.search === "") return value;
  const text = "a URL without user, password and query; OTEL_EXPORTER_OTLP_HEADERS carries keys";
  throw refused(setting.slice(0, setting.indexOf("=") + 1), text);
}

function refused(setting: string, expected: string): InferenceError {
  return new InferenceError(
    StatusCode.InvalidArg,
    `--trace-config: given '${setting}', expected ${expected}`,
  );
}
