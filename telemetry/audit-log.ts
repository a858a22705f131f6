import type { Principal } from "../protocol/call.ts";
import { InferenceError } from "../protocol/error.ts";

/** What is changed, as the lines of the audit log name it; docs/audit.md tells of each. */
export const auditActions = [
  "model.load",
  "model.unload",
  "model.push",
  "cache.flush",
  "log.update",
  "trace.update",
  "shared-memory.register",
  "shared-memory.unregister",
  "key.create",
  "key.update",
  "key.rotate",
  "key.revoke",
  "key.publish",
] as const;
export type AuditAction = (typeof auditActions)[number];

/** More about a change: names and settings, never secrets or tensors. */
export type AuditDetails = Readonly<Record<string, unknown>>;

/** One change, or the attempt at one. */
export interface AuditRecord {
  readonly action: AuditAction;
  /** What is changed: a model, a region, a key by its id; "" where the action says all. */
  readonly subject: string;
  /** Who did it. */
  readonly principal: Principal;
  /** The way it came. */
  readonly via: "http" | "grpc" | "command" | "model" | "poll";
  /** Of whoever connected, as in `10.0.0.7`. */
  readonly address?: string | undefined;
  /** As the client named it. */
  readonly requestId?: string | undefined;
  readonly details?: AuditDetails;
  /** Why nothing came of it; absent for a change that was made. */
  readonly cause?: unknown;
}

/** Where changes of models, keys and settings are told: one line each, of those that were refused, too. */
export interface AuditLog {
  /** Returns at once and never throws: what is served does not depend on it. */
  write(record: AuditRecord): void;
}

/** Texts and lists come from clients. */
const longestText = 256;
const longestList = 16;

/** The fields of a record's line, without its time. */
export function auditFields(record: AuditRecord): Readonly<Record<string, unknown>> {
  const { action, subject, principal, via, address, requestId, details, cause } = record;
  const error = cause === undefined ? undefined : InferenceError.from(cause);
  return {
    action,
    ...(subject !== "" && { subject: cut(subject) }),
    result: error?.code ?? "OK",
    ...(error && { error: cut(error.message) }),
    principal: principal.name,
    ...(principal.title !== undefined && { principalTitle: cut(principal.title) }),
    tenant: principal.tenant,
    ...(address !== undefined && { address }),
    via,
    ...(requestId !== undefined && { requestId: cut(requestId) }),
    ...(details && Object.keys(details).length > 0 && { details: bounded(details) }),
  };
}

function bounded(details: AuditDetails): AuditDetails {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.slice(0, longestList).map(boundedText) : boundedText(value),
    ]),
  );
}

function boundedText(value: unknown): unknown {
  return typeof value === "string" ? cut(value) : value;
}

function cut(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}
