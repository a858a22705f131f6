import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { asBoolean, asString, asUnsigned, member } from "../../protocol/json-access.ts";
import type { LogFormat, LogSettings, LogSettingValues } from "../../telemetry/log-settings.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import { readJsonBody } from "./json-body.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

type Changes = { -readonly [Name in keyof LogSettingValues]?: LogSettingValues[Name] };

/** `/v2/logging`: shows the log's settings, and changes those that a client may change. */
export function addLoggingRoutes(app: HttpRoutes, options: HttpOptions): void {
  const { log, logSettings, maxInputBytes } = options;
  addRoute(app, "/v2/logging", {
    GET: (context) => context.json(settingsJson(logSettings)),
    POST: exchangeHandler(log, async ({ incoming, outgoing }) => {
      const changes = await readJsonBody(incoming, outgoing, maxInputBytes, ({ root }) =>
        parseChanges(root),
      );
      logSettings.update(changes);
      sendJson(outgoing, 200, JSON.stringify(settingsJson(logSettings)));
    }),
  });
}

function settingsJson(settings: LogSettings): Readonly<Record<string, string | boolean | number>> {
  const values = settings.get();
  return {
    log_file: values.logFile,
    log_info: values.logInfo,
    log_warning: values.logWarning,
    log_error: values.logError,
    log_verbose_level: values.logVerboseLevel,
    log_format: values.logFormat,
  };
}

const switches = {
  log_info: "logInfo",
  log_warning: "logWarning",
  log_error: "logError",
} as const;

/** All of a request's changes, or none where one is wrong. A setting of null stays as it is. */
function parseChanges(json: unknown): Changes {
  if (member(json, "log_file") !== undefined) {
    throw new InferenceError(
      StatusCode.Unsupported,
      "log file location can not be updated through network protocol",
    );
  }
  const changes: Changes = {};
  for (const [key, name] of Object.entries(switches)) {
    const value = member(json, key) ?? undefined;
    if (value !== undefined) changes[name] = asBoolean(value, "");
  }
  const level = member(json, "log_verbose_level") ?? undefined;
  if (level !== undefined) changes.logVerboseLevel = asLevel(level);
  const format = member(json, "log_format") ?? undefined;
  if (format !== undefined) changes.logFormat = asLogFormat(format);
  return changes;
}

function asLevel(value: unknown): number {
  const level = asUnsigned(value, "");
  if (level < 2 ** 32) return level;
  throw new InferenceError(
    StatusCode.InvalidArg,
    `log_verbose_level: given ${level}, expected at most ${2 ** 32 - 1}`,
  );
}

function asLogFormat(value: unknown): LogFormat {
  const format = asString(value, "");
  if (format === "default" || format === "ISO8601") return format;
  throw new InferenceError(
    StatusCode.InvalidArg,
    `invalid argument for --log_format, got: ${format}`,
  );
}
