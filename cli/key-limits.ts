import { limitKey } from "../auth/key-changes.ts";
import type { KeyStore } from "../auth/key-store.ts";
import { limitNames, type Limits } from "../auth/limits/limits.ts";
import { limitSpellings } from "./limits-file.ts";
import type { Settings } from "./settings.ts";

/** The limits that the flags give a key. */
export function keyLimits({
  requestsPerSecond,
  itemsPerSecond,
  inFlight,
  dailyItems,
}: Settings): Limits {
  const given = { requestsPerSecond, itemsPerSecond, inFlight, dailyItems };
  return Object.fromEntries(Object.entries(given).filter(([, limit]) => limit !== undefined));
}

/** `tidepool keys limit <id>`: gives a key the limits of the flags, and takes all others from it. */
export async function changeKeyLimits(
  store: KeyStore,
  settings: Settings,
  id: string,
): Promise<void> {
  const { name, limits } = await limitKey(store, id, keyLimits(settings));
  process.stderr.write(`key ${id} (${name}) has these limits: ${limitsText(limits)}\n`);
}

/** As in `in-flight=8,daily-items=1000`. */
export function limitsText(limits: Limits = {}): string {
  const given = limitNames.filter((name) => limits[name] !== undefined);
  return given.map((name) => `${limitSpellings[name]}=${limits[name]}`).join(",") || "none";
}
