import { openAccess } from "./access.ts";
import { openAdmission } from "./admission.ts";
import { openAuditLog } from "./audit-log.ts";
import { serveEngine } from "./serve-engine.ts";
import type { ReadSettings } from "./settings.ts";
import { startEngine } from "./start-engine.ts";
import { startLog } from "./start-log.ts";
import { openTls } from "./tls.ts";
import { openTracer } from "./tracer.ts";

/**
 * `tidepool serve`: gateway and models in one process.
 *
 * @returns the exit code: 0 after a clean end, 1 when models failed to load or requests had to be cut off
 */
export async function serve(read: ReadSettings): Promise<number> {
  const log = await startLog(read);
  const audit = openAuditLog(read.settings, log);
  const access = await openAccess(read.settings, log);
  const admission = await openAdmission(read.settings);
  const tls = await openTls(read.settings, log);
  const tracer = await openTracer(read.settings, log);
  const started = await startEngine(read.settings, log, { audit, tracer });
  return serveEngine(read.settings, log, started, { access, admission, tls, tracer, audit });
}
