import { invalidArgument } from "../../protocol/error.ts";
import { isJsonObject } from "../../protocol/json-access.ts";

/** What may be bounded of a caller's work. Items are what a batch is made of: an image, a row. */
export const limitNames = [
  "requestsPerSecond",
  "itemsPerSecond",
  "inFlight",
  "dailyItems",
] as const;
export type LimitName = (typeof limitNames)[number];

/** Bounds of the work of one key, or of all callers of a tenant together; what is absent is not bounded. */
export type Limits = Readonly<Partial<Record<LimitName, number>>>;

/** Where nothing is bounded. */
export const noLimits: Limits = {};

/** No bound is larger: the headers that tell of it hold whole numbers of fifteen digits. */
export const largestLimit = 1_000_000_000_000;

/** True where at least one thing is bounded. */
export function bounds(limits: Limits): boolean {
  return limitNames.some((name) => limits[name] !== undefined);
}

/** Reads limits that came from outside; throws INVALID_ARG with what is wrong with them. */
export function readLimits(json: unknown): Limits {
  if (!isJsonObject(json)) throw invalidArgument("limits: given no object, expected one");
  const unknown = Object.keys(json).find((key) => !limitNames.some((name) => name === key));
  if (unknown !== undefined) {
    throw invalidArgument(`limits: given '${unknown}', expected some of ${limitNames.join(", ")}`);
  }
  const given = limitNames.filter((name) => json[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, limitIn(name, json[name])]));
}

function limitIn(name: LimitName, value: unknown): number {
  if (isLimit(value)) return value;
  throw invalidArgument(
    `limits.${name}: given ${JSON.stringify(value)}, expected a whole number from 1 to ${largestLimit}`,
  );
}

function isLimit(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0 && value <= largestLimit;
}
