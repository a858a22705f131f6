import type { LogSettings, LogSettingValues } from "../../telemetry/log-settings.ts";
import type { LogFields, Logger } from "../../telemetry/logger.ts";

/** A log that keeps its errors instead of writing them, with settings that can be changed. */
export class SilentLog implements Logger, LogSettings {
  readonly errors: [message: string, fields: LogFields][] = [];
  readonly verboseLevel = 0;
  #values: LogSettingValues = {
    logFile: "",
    logInfo: true,
    logWarning: true,
    logError: true,
    logVerboseLevel: 0,
    logFormat: "default",
  };

  get(): LogSettingValues {
    return this.#values;
  }

  update(changes: Partial<LogSettingValues>): void {
    this.#values = { ...this.#values, ...changes };
  }

  error(message: string, fields: LogFields = {}): void {
    this.errors.push([message, fields]);
  }

  warn(): void {}
  info(): void {}
  verbose(): void {}
}
