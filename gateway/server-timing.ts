import type { Call } from "../protocol/call.ts";
import { coldStartDurations, coldStartPhases } from "../protocol/cold-start.ts";

/**
 * Says in the words of the `Server-Timing` header what a call that is answered now has waited for; undefined for one
 * that met a version which was there.
 */
export function serverTiming({ coldStart, receivedAt }: Call): string | undefined {
  if (!coldStart) return undefined;
  const now = Date.now();
  const durations = coldStartDurations(coldStart, now - (performance.now() - receivedAt), now);
  return coldStartPhases.map((phase) => `${phase};dur=${durations[phase].toFixed(1)}`).join(", ");
}
