import { InferenceError, StatusCode, invalidArgument } from "../protocol/error.ts";
import type { LogFormat, LogSettingValues } from "../telemetry/log-settings.ts";

/** The settings of one request, read from its wire; each reader throws for a value of another type. */
export interface GivenLogSettings {
  has(name: string): boolean;
  /** Undefined where the setting stays as it is; so for the others. */
  boolean(name: string): boolean | undefined;
  unsigned(name: string): number | undefined;
  string(name: string): string | undefined;
  /** How the reference's complaint spells the format's name on this wire. */
  readonly formatName: string;
}

type Changes = { -readonly [Name in keyof LogSettingValues]?: LogSettingValues[Name] };

const switches = {
  log_info: "logInfo",
  log_warning: "logWarning",
  log_error: "logError",
} as const;

const largestLevel = 2 ** 32 - 1;

/**
 * The changes of the log's settings that a client asks for: all of them, or it throws before any takes effect.
 * Settings that nobody knows are ignored.
 */
export function logSettingChanges(given: GivenLogSettings): Partial<LogSettingValues> {
  if (given.has("log_file")) {
    throw new InferenceError(
      StatusCode.Unsupported,
      "log file location can not be updated through network protocol",
    );
  }
  const changes: Changes = {};
  for (const [key, name] of Object.entries(switches)) {
    const value = given.boolean(key);
    if (value !== undefined) changes[name] = value;
  }
  const level = given.unsigned("log_verbose_level");
  if (level !== undefined) changes.logVerboseLevel = checkedLevel(level);
  const format = given.string("log_format");
  if (format !== undefined) changes.logFormat = checkedFormat(format, given.formatName);
  return changes;
}

/** The settings by the names that they have on both wires. */
export function logSettingFields(
  values: LogSettingValues,
): Readonly<Record<string, string | boolean | number>> {
  return {
    log_file: values.logFile,
    log_info: values.logInfo,
    log_warning: values.logWarning,
    log_error: values.logError,
    log_verbose_level: values.logVerboseLevel,
    log_format: values.logFormat,
  };
}

function checkedLevel(level: number): number {
  if (level <= largestLevel) return level;
  throw invalidArgument(`log_verbose_level: given ${level}, expected at most ${largestLevel}`);
}

function checkedFormat(format: string, name: string): LogFormat {
  if (format === "default" || format === "ISO8601") return format;
  throw invalidArgument(`invalid argument for ${name}, got: ${format}`);
}
