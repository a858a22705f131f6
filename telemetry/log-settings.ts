/** How a log line starts: both are JSON here, only the spelling of the time differs. */
export type LogFormat = "default" | "ISO8601";

/** What a client sees at `/v2/logging`, and what the `--log-…` flags set. */
export interface LogSettingValues {
  /** Path of the log file, or "" for standard output; only the command line sets it. */
  readonly logFile: string;
  readonly logInfo: boolean;
  readonly logWarning: boolean;
  readonly logError: boolean;
  /** 0 is silent, 1 tells of every request, 2 and more tell of every step. */
  readonly logVerboseLevel: number;
  readonly logFormat: LogFormat;
}

/** The log settings of the running server, which a client may read and change. */
export interface LogSettings {
  get(): LogSettingValues;
  /** Takes effect with the next line. Refusing a change of `logFile` is the transport's part. */
  update(changes: Partial<LogSettingValues>): void;
}
