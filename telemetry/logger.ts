import { pino } from "pino";
import { InferenceError } from "../protocol/error.ts";
import type { LogSettings, LogSettingValues } from "./log-settings.ts";

/** What a line tells beside its message: `requestId`, `model`, `version`, and `err` for the error behind it. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Where every part of the server reports what happens: one event, one line. */
export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  /** From level 1 on; ask {@link verboseLevel} first where the fields cost something. */
  verbose(level: number, message: string, fields?: LogFields): void;
  readonly verboseLevel: number;
}

/** Something that lines are written to: a stream, a file. */
export interface LogDestination {
  write(line: string): void;
}

/** The server's log: writes lines, and takes new settings while it runs. */
export class ServerLog implements Logger, LogSettings {
  readonly #open: (logFile: string) => LogDestination;
  #values: LogSettingValues;
  #destination: LogDestination;
  readonly #pino: pino.Logger;

  /**
   * @param open gives the place for lines: "" stands for standard output. Called again when `logFile` changes.
   * @param process which of several processes writes, for logs that meet in one place
   */
  constructor(
    values: LogSettingValues,
    open: (logFile: string) => LogDestination,
    process?: string,
  ) {
    this.#open = open;
    this.#values = values;
    this.#destination = open(values.logFile);
    this.#pino = pino(
      {
        // Which lines are wanted is decided here, by switches that are no scale; pino passes everything on.
        level: "trace",
        base: process === undefined ? null : { process },
        serializers: { err: errorFields },
        formatters: { level: (level) => ({ level }) },
        timestamp: () => `,"time":${this.#time()}`,
      },
      { write: (line: string) => this.#destination.write(line) },
    );
  }

  get(): LogSettingValues {
    return this.#values;
  }

  update(changes: Partial<LogSettingValues>): void {
    const values = { ...this.#values, ...changes };
    if (values.logFile !== this.#values.logFile) this.#destination = this.#open(values.logFile);
    this.#values = values;
  }

  get verboseLevel(): number {
    return this.#values.logVerboseLevel;
  }

  error(message: string, fields: LogFields = {}): void {
    if (this.#values.logError) this.#pino.error(fields, message);
  }

  warn(message: string, fields: LogFields = {}): void {
    if (this.#values.logWarning) this.#pino.warn(fields, message);
  }

  info(message: string, fields: LogFields = {}): void {
    if (this.#values.logInfo) this.#pino.info(fields, message);
  }

  verbose(level: number, message: string, fields: LogFields = {}): void {
    if (level <= this.#values.logVerboseLevel)
      this.#pino.debug({ verbose: level, ...fields }, message);
  }

  /** At level info, whatever the switches say: what must not be turned off by those of whom it tells. */
  always(message: string, fields: LogFields): void {
    this.#pino.info(fields, message);
  }

  #time(): string {
    const now = new Date();
    return this.#values.logFormat === "ISO8601" ? `"${now.toISOString()}"` : String(now.getTime());
  }
}

/** An error of ours says all in its text; where it stands for an unexpected one, and for all others, the stack counts. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof InferenceError)) {
    return error instanceof Error ? pino.stdSerializers.err(error) : error;
  }
  const { name, code, message, cause } = error;
  return { type: name, code, message, ...(cause !== undefined && { cause: errorFields(cause) }) };
}
