import { InferenceError, StatusCode } from "../protocol/error.ts";
import { isJsonObject } from "../protocol/json-access.ts";
import { tenantForm, tenantPattern } from "../protocol/tenant.ts";
import { type Limits, readLimits } from "./limits/limits.ts";
import { type Scope, scopeOf, scopes } from "./scope.ts";

/** What is known of a key without its secret. Times are milliseconds since the epoch. */
export interface KeyRecord {
  readonly id: string;
  /** How people know it. */
  readonly name: string;
  readonly tenant: string;
  readonly scopes: readonly Scope[];
  /** Patterns of the names of models. */
  readonly models: readonly string[];
  /** What its holder may do in a time; no bound where it is absent. */
  readonly limits?: Limits;
  readonly createdAt: number;
  readonly expiresAt?: number;
  /** Digest of its text, in hexadecimal. */
  readonly sha256: string;
  /** Its secret before the last rotation. */
  readonly previous?: PreviousSecret;
}

export interface PreviousSecret {
  readonly sha256: string;
  readonly expiresAt: number;
}

/** Bounds of what is kept of one key, and how each is told. */
const rules = {
  id: [/^[0-9a-f]{12}$/u, "12 hexadecimal digits"],
  sha256: [/^[0-9a-f]{64}$/u, "64 hexadecimal digits"],
  name: [/^[ -~]{1,64}$/u, "1 to 64 characters of ASCII"],
  tenant: [tenantPattern, tenantForm],
  model: [/^[\w.*-]{1,128}$/u, "1 to 128 letters, digits, '_', '.', '-' or '*'"],
} as const satisfies Record<string, readonly [RegExp, string]>;

const mostPatterns = 100;

/** Reads a record that came from outside; throws INVALID_ARG with what is wrong with it. */
export function readKeyRecord(json: unknown): KeyRecord {
  if (!isJsonObject(json)) throw wrong("given no object, expected the record of a key");
  const { expiresAt, limits, previous } = json;
  return {
    id: text("id", "id", json["id"]),
    name: text("name", "name", json["name"]),
    tenant: text("tenant", "tenant", json["tenant"]),
    scopes: list("scopes", json["scopes"]).map(scopeIn),
    models: list("models", json["models"]).map((one) => text("models", "model", one)),
    ...(limits !== undefined && { limits: readLimits(limits) }),
    createdAt: time("createdAt", json["createdAt"]),
    ...(expiresAt !== undefined && { expiresAt: time("expiresAt", expiresAt) }),
    sha256: text("sha256", "sha256", json["sha256"]),
    ...(previous !== undefined && { previous: secretIn(previous) }),
  };
}

function secretIn(previous: unknown): PreviousSecret {
  if (!isJsonObject(previous)) throw wrong(`previous: given ${shown(previous)}, expected a secret`);
  return {
    sha256: text("previous.sha256", "sha256", previous["sha256"]),
    expiresAt: time("previous.expiresAt", previous["expiresAt"]),
  };
}

function text(field: string, rule: keyof typeof rules, value: unknown): string {
  const [pattern, expected] = rules[rule];
  if (typeof value === "string" && pattern.test(value)) return value;
  throw wrong(`${field}: given ${shown(value)}, expected ${expected}`);
}

function scopeIn(value: unknown): Scope {
  const scope = scopeOf(value);
  if (scope) return scope;
  throw wrong(`scopes: given ${shown(value)}, expected one of ${scopes.join(", ")}`);
}

function list(field: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= mostPatterns) return value;
  throw wrong(`${field}: given ${shown(value)}, expected a list of 1 to ${mostPatterns}`);
}

function time(field: string, value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw wrong(`${field}: given ${shown(value)}, expected milliseconds since 1970`);
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? "nothing";
  return json.length > 80 ? `${json.slice(0, 80)}…` : json;
}

function wrong(message: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, `key record: ${message}`);
}
