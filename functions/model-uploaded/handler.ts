import { setTimeout as sleep } from "node:timers/promises";
import { activate } from "./activate.ts";
import { type Arrival, arrivalsIn, modelOf } from "./arrivals.ts";
import { SeenArrivals } from "./seen-arrivals.ts";
import { readSettings } from "./settings.ts";

/** Then the event comes again. */
const attempts = 5;

/** Outlives an event, in a function that is kept warm. */
const seen = new SeenArrivals();

/**
 * A function for events of S3, as Amazon's Lambda calls it: has the gateway serve what arrived. Throws when that fails for
 * some model, so that the event comes again; by then the rest of the model may be there.
 *
 * @returns the versions that answer, by model
 */
export async function handler(
  event: unknown,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const settings = readSettings(process.env);
  const arrivals = arrivalsIn(event).filter((arrival) => seen.isNew(arrival));
  const byModel = Map.groupBy(arrivals, (arrival) => modelOf(arrival, settings));
  const gateway = {
    url: settings.gatewayUrl,
    key: settings.gatewayKey,
    headers: settings.gatewayHeaders,
    attempts,
    fetch,
    sleep: (milliseconds: number) => sleep(milliseconds),
  };
  const versions: Record<string, readonly string[]> = {};
  const failures: string[] = [];
  for (const [model, its] of byModel) {
    if (model === undefined) continue;
    try {
      versions[model] = await activate(model, gateway);
    } catch (error) {
      failures.push(failed(model, its, error));
    }
  }
  if (failures.length > 0) throw new Error(failures.join("; "));
  return versions;
}

function failed(model: string, arrivals: readonly Arrival[], error: unknown): string {
  for (const arrival of arrivals) seen.forget(arrival);
  return `model '${model}': ${error instanceof Error ? error.message : String(error)}`;
}
