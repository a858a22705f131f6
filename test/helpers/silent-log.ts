import type { LogSettings, LogSettingValues } from "../../telemetry/log-settings.ts";
import type { LogFields, Logger } from "../../telemetry/logger.ts";

/** A log that keeps its errors, warnings and verbose lines instead of writing them, with settings that can be changed. */
export class SilentLog implements Logger, LogSettings {
  readonly errors: [message: string, fields: LogFields][] = [];
  readonly warnings: string[] = [];
  readonly verboseLines: [message: string, fields: LogFields][] = [];
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

  get verboseLevel(): number {
    return this.#values.logVerboseLevel;
  }

  error(message: string, fields: LogFields = {}): void {
    this.errors.push([message, fields]);
  }

  warn(message: string): void {
    this.warnings.push(message);
  }

  info(): void {}

  verbose(_level: number, message: string, fields: LogFields = {}): void {
    this.verboseLines.push([message, fields]);
  }
}
