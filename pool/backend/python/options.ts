import type { Logger } from "../../../telemetry/logger.ts";
import type { ModelHost } from "./host.ts";

/** How Python models are run. */
export interface PythonOptions {
  /** The interpreter of models that bring none. */
  readonly python: string;
  /** What one `execute` may take; Infinity for no bound. */
  readonly executeTimeoutMilliseconds: number;
  /** What importing a model and its `initialize` may take together. */
  readonly startTimeoutMilliseconds: number;
  /** Resident memory of one instance, without what it shares with this process; Infinity for no bound. */
  readonly memoryLimitBytes: number;
  /** Where environments that come packed are unpacked. */
  readonly cacheDirectory: string;
  /** What a model may ask of the server. */
  readonly host: ModelHost;
  readonly log: Logger;
}
