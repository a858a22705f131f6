import { createHash } from "node:crypto";

/** Stands for a tenant where a pool worker sees no more of a job than its id, and nobody is to read whose it is. */
export function tenantMark(tenant: string): string {
  return createHash("sha256").update(tenant).digest("hex").slice(0, 12);
}

/** The id of a job that runs an envelope. */
export function markedJobId(envelope: string, mark: string): string {
  return `${envelope}~${mark}`;
}

/** The mark in a job's id, or in what was made of one; "" when it has none. */
export function markOf(jobId: string): string {
  return /~([0-9a-f]{12})/u.exec(jobId)?.[1] ?? "";
}
