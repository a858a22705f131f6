import { InferenceError, StatusCode } from "./error.ts";

/** A JSON object as the reader gives it: look only at members that a schema names, or at its own keys. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The reference answers a request that it cannot read with INTERNAL, HTTP 500; clients have grown used to it. */
export function jsonError(text: string): InferenceError {
  return new InferenceError(StatusCode.Internal, text);
}

/** The reference's text for a value of another type than the one that is wanted. */
export function wrongType(subject: string, found: string, wanted: string): InferenceError {
  return jsonError(`${subject}attempt to access JSON non-${found} as ${wanted}`);
}

/** True for `{…}`. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object's member, or undefined where there is no object or no member. */
export function member(value: unknown, name: string): unknown {
  return isJsonObject(value) ? value[name] : undefined;
}

/** The member that must be there; throws the reference's text for one that is not. */
export function requiredMember(value: unknown, name: string): unknown {
  const found = member(value, name);
  if (found !== undefined) return found;
  throw jsonError(
    `Unable to parse '${name}': attempt to access non-existing object member '${name}'`,
  );
}

/** The value as a string; `subject` is how the complaint begins: `Unable to parse 'id': `. */
export function asString(value: unknown, subject: string): string {
  if (typeof value === "string") return value;
  throw wrongType(subject, "string", "string");
}

export function asBoolean(value: unknown, subject: string): boolean {
  if (typeof value === "boolean") return value;
  throw wrongType(subject, "boolean", "boolean");
}

export function asArray(value: unknown, subject: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw wrongType(subject, "array", "array");
}

/** The value as a whole number of at least 0; beyond 2^53 not exact, but still huge. */
export function asUnsigned(value: unknown, subject: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  if (typeof value === "bigint" && value >= 0n) return Number(value);
  throw wrongType(subject, "unsigned-integer", "unsigned-integer");
}

/** The object's own members. */
export function membersOf(value: unknown, subject: string): readonly [string, unknown][] {
  if (isJsonObject(value)) return Object.entries(value);
  throw jsonError(`${subject}attempt to get members for non-object`);
}
