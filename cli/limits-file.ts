import type { LimitRules } from "../auth/limits/caller-limits.ts";
import {
  largestLimit,
  type LimitName,
  limitNames,
  type Limits,
  noLimits,
} from "../auth/limits/limits.ts";
import { type FieldType, wholeNumber } from "./pool-file/field-type.ts";
import { readText } from "./pool-file/read-text.ts";
import { YamlReading, type YamlValue } from "./pool-file/yaml-reading.ts";

/** How a limit is spelled where people write it: in files, and as a flag. */
export const limitSpellings = {
  requestsPerSecond: "requests-per-second",
  itemsPerSecond: "items-per-second",
  inFlight: "in-flight",
  dailyItems: "daily-items",
} as const satisfies Readonly<Record<LimitName, string>>;

const spellings = Object.values(limitSpellings);
const mostTenants = 10_000;

/** The rules of a file of limits; throws a UsageError that lists all that is wrong with it. */
export async function readLimitsFile(path: string): Promise<LimitRules> {
  return parseLimitsFile(await readText(path, "limits"), path);
}

/** The rules that the text of a file has; throws a UsageError with all its mistakes, each with file and line. */
export function parseLimitsFile(text: string, fileName: string): LimitRules {
  const reading = new YamlReading(text, fileName);
  const fields = reading.fields(reading.root, ["each-key", "each-tenant", "tenants"]);
  const limitsAt = (key: "each-key" | "each-tenant"): Limits => {
    const value = fields?.at(key);
    return value?.node === undefined ? noLimits : readLimits(reading, value, []);
  };
  const rules = {
    eachKey: limitsAt("each-key"),
    eachTenant: limitsAt("each-tenant"),
    tenants: readTenants(reading, fields?.at("tenants")),
  };
  reading.throwProblems();
  return rules;
}

function readTenants(
  reading: YamlReading,
  list: YamlValue | undefined,
): ReadonlyMap<string, Limits> {
  const tenants = new Map<string, Limits>();
  if (list?.node === undefined) return tenants;
  for (const item of reading.items(list, mostTenants, "tenants")) {
    const name = reading.fields(item, ["name", ...spellings])?.at("name");
    if (!name) continue;
    const tenant = reading.required(name, tenantName);
    if (tenant === undefined) continue;
    if (tenants.has(tenant)) reading.refuse(name, "another name than those above");
    tenants.set(tenant, readLimits(reading, item, ["name"]));
  }
  return tenants;
}

/** @param others fields that are none of limits */
function readLimits(reading: YamlReading, mapping: YamlValue, others: readonly "name"[]): Limits {
  const fields = reading.fields(mapping, [...spellings, ...others]);
  if (!fields) return noLimits;
  const given = limitNames.flatMap((name) => {
    const value = fields.optional(limitSpellings[name], aLimit, 0);
    return value > 0 ? [[name, value] as const] : [];
  });
  return Object.fromEntries(given);
}

const aLimit = wholeNumber(1, largestLimit);

const longestTenant = 256;

/** Tokens may name a tenant by any text. */
const tenantName: FieldType<string> = {
  expected: `a tenant's name of 1 to ${longestTenant} characters`,
  parse: (given) =>
    typeof given === "string" && given !== "" && given.length <= longestTenant ? given : undefined,
};
