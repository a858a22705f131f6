import type { UntypedHandleCall } from "@grpc/grpc-js";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { LogSettingValues } from "../../telemetry/log-settings.ts";
import type { GrpcOptions } from "./options.ts";
import { unaryMethod } from "./unary-method.ts";

/** A `SettingValue`: at most one of its values is there. */
interface SettingValue {
  readonly boolParam?: boolean;
  readonly uint32Param?: number;
  readonly stringParam?: string;
}

type Settings = Readonly<Record<string, SettingValue>>;
type Changes = { -readonly [Name in keyof LogSettingValues]?: LogSettingValues[Name] };

const switches = {
  log_info: "logInfo",
  log_warning: "logWarning",
  log_error: "logError",
} as const;

/** LogSettings: changes what the request names, and answers how things are then. */
export function logSettingsMethod({ log, logSettings }: GrpcOptions): UntypedHandleCall {
  return unaryMethod(
    "LogSettings",
    ({ settings }) => {
      const changes = changesOf(settings);
      if (Object.keys(changes).length > 0) logSettings.update(changes);
      return { settings: settingsOf(logSettings.get()) };
    },
    log,
  );
}

/** All or nothing: a wrong one throws before any takes effect. Settings that nobody knows are ignored. */
function changesOf(settings: Settings): Changes {
  if (settings["log_file"]) {
    throw new InferenceError(
      StatusCode.Unsupported,
      "log file location can not be updated through network protocol",
    );
  }
  const changes: Changes = {};
  for (const [key, name] of Object.entries(switches)) {
    const given = settings[key];
    if (!given) continue;
    if (given.boolParam === undefined) throw expected("boolean", key);
    changes[name] = given.boolParam;
  }
  const level = settings["log_verbose_level"];
  if (level) {
    if (level.uint32Param === undefined) throw expected("int32", "log_verbose_level");
    changes.logVerboseLevel = level.uint32Param;
  }
  const format = settings["log_format"];
  if (format) changes.logFormat = logFormat(format);
  return changes;
}

function logFormat({ stringParam }: SettingValue): LogSettingValues["logFormat"] {
  if (stringParam === undefined) throw expected("string", "log_format");
  if (stringParam === "default" || stringParam === "ISO8601") return stringParam;
  throw invalid(`invalid argument for log_format, got: ${stringParam}`);
}

function settingsOf(values: LogSettingValues): Settings {
  return {
    log_file: { stringParam: values.logFile },
    log_info: { boolParam: values.logInfo },
    log_warning: { boolParam: values.logWarning },
    log_error: { boolParam: values.logError },
    log_verbose_level: { uint32Param: values.logVerboseLevel },
    log_format: { stringParam: values.logFormat },
  };
}

function expected(type: string, key: string): InferenceError {
  return invalid(`expect ${type} for '${key}'`);
}

function invalid(text: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, text);
}
