import { openAccess } from "./access.ts";
import { serveEngine } from "./serve-engine.ts";
import type { ReadSettings } from "./settings.ts";
import { startEngine } from "./start-engine.ts";
import { startLog } from "./start-log.ts";

/**
 * `tidepool serve`: gateway and models in one process.
 *
 * @returns the exit code: 0 after a clean end, 1 when models failed to load or requests had to be cut off
 */
export async function serve(read: ReadSettings): Promise<number> {
  const log = await startLog(read);
  const access = await openAccess(read.settings, log);
  return serveEngine(read.settings, log, await startEngine(read.settings, log), access);
}
