import { createHash } from "node:crypto";
import type { Principal } from "../protocol/call.ts";
import type { BinaryOutputs } from "../protocol/infer-json.ts";
import type { Job, JobError, JobState } from "../protocol/job.ts";

/** A job as Redis keeps it, without its request and result: the fields of a hash, all of them texts. */
export interface JobRecord {
  readonly job: Job;
  /** See {@link ownerOf}. */
  readonly owner: string;
  readonly tenant: string;
  /** Key of the version that is to run it. */
  readonly version: string;
  readonly binaryOutputs: BinaryOutputs;
  /** URL that is told when it has ended. */
  readonly webhook: string | undefined;
  /** W3C trace context of what accepted it, where that is traced. */
  readonly traceparent: string | undefined;
}

/** What is known of a job when it is submitted. */
export interface NewRecord {
  readonly owner: string;
  readonly tenant: string;
  readonly model: string;
  /** As the client asked for it. */
  readonly modelVersion: string;
  /** Key of the version that is to run it. */
  readonly version: string;
  readonly binaryOutputs: BinaryOutputs;
  readonly createdAt: number;
  readonly webhook: string | undefined;
  readonly traceparent: string | undefined;
  readonly limits: RunLimits;
}

/** What the pool worker that runs a job is told by the gateway that took it. */
export interface RunLimits {
  readonly resultMilliseconds: number;
  readonly failedMilliseconds: number;
  readonly maxResultBytes: number;
  readonly attempts: number;
}

/** Those that {@link readRecord} reads, in its order. */
export const recordFields = [
  "owner",
  "tenant",
  "version",
  "binary",
  "state",
  "model",
  "requested",
  "created",
  "attempts",
  "changes",
  "started",
  "ended",
  "error",
  "webhook",
  "traceparent",
] as const;

/** Names and values, one after the other. */
export function writeRecord(record: NewRecord): string[] {
  const { binaryOutputs, webhook, traceparent } = record;
  const fields = {
    owner: record.owner,
    tenant: record.tenant,
    model: record.model,
    requested: record.modelVersion,
    version: record.version,
    binary: JSON.stringify(binaryOutputs === "all" ? "all" : [...binaryOutputs]),
    created: String(record.createdAt),
    queued: String(record.createdAt),
    ...(webhook !== undefined && { webhook }),
    ...(traceparent !== undefined && { traceparent }),
    limits: JSON.stringify(record.limits),
    state: "queued" satisfies JobState,
    attempts: "0",
    changes: "1",
  };
  return Object.entries(fields).flat();
}

/** Undefined for one that is not there. */
export function readRecord(id: string, values: readonly (string | null)[]): JobRecord | undefined {
  const entries = recordFields.map((name, index) => [name, values[index] ?? ""] as const);
  const texts = Object.fromEntries(entries);
  const text = (name: (typeof recordFields)[number]): string => texts[name] ?? "";
  if (text("owner") === "" || text("state") === "") return undefined;
  const binary: "all" | string[] = JSON.parse(text("binary"));
  const error: JobError | undefined = text("error") === "" ? undefined : JSON.parse(text("error"));
  const job: Job = {
    id,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this program
    state: text("state") as JobState,
    modelName: text("model"),
    modelVersion: text("requested"),
    createdAt: Number(text("created")),
    attempts: Number(text("attempts")),
    changes: Number(text("changes")),
    ...(text("started") !== "" && { startedAt: Number(text("started")) }),
    ...(text("ended") !== "" && { endedAt: Number(text("ended")) }),
    ...(error && { error }),
  };
  return {
    job,
    owner: text("owner"),
    tenant: text("tenant"),
    version: text("version"),
    binaryOutputs: binary === "all" ? "all" : new Set(binary),
    webhook: text("webhook") || undefined,
    traceparent: text("traceparent") || undefined,
  };
}

/** Stands for a principal in keys: what clients choose never becomes a part of one as it is. */
export function ownerOf({ name, tenant }: Principal): string {
  return digestOf(tenant, name);
}

/** One text for several, whatever is in them. */
export function digestOf(...texts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(texts)).digest("base64url").slice(0, 32);
}
