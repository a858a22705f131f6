import { logDestinations } from "../telemetry/log-destination.ts";
import { ServerLog } from "../telemetry/logger.ts";
import { exitAtOnce } from "./drain.ts";
import type { ReadSettings, Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/**
 * Opens the log of a process that serves, and tells there what was odd about its flags.
 *
 * @param name which of a deployment's processes it is
 */
export async function startLog(
  { settings, warnings }: ReadSettings,
  name?: string,
): Promise<ServerLog> {
  const log = await openLog(settings, name);
  process.on("uncaughtException", (err) => {
    log.error("unexpected error; the process ends", { err });
    exitAtOnce(1);
  });
  for (const warning of warnings) log.warn(warning);
  return log;
}

async function openLog(settings: Settings, name?: string): Promise<ServerLog> {
  const values = {
    logFile: settings.logFile,
    logInfo: settings.logInfo,
    logWarning: settings.logWarning,
    logError: settings.logError,
    logVerboseLevel: settings.logVerbose,
    logFormat: settings.logFormat,
  };
  const destinations = await logDestinations();
  try {
    return new ServerLog(values, destinations, name);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--log-file: given ${settings.logFile}, ${reason}`, { cause });
  }
}
