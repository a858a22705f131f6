import type { LogSettings } from "../../telemetry/log-settings.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Restrictions } from "../restrictions.ts";

/** What the HTTP side is told by the command line. */
export interface HttpOptions {
  /** `--http-max-input-size`: the largest body a request may have, before and after decompression. */
  readonly maxInputBytes: number;
  /** `--http-header-forward-pattern`: headers whose name it finds become parameters of the request. */
  readonly headerForwardPattern?: RegExp;
  /** `--http-restricted-api`: parts of the API that ask for a header; none by default. */
  readonly restrictions?: Restrictions;
  readonly log: Logger;
  readonly logSettings: LogSettings;
}
