import { createHash, randomBytes } from "node:crypto";

const tagLength = 6;
const pattern = /^j_[\w-]{6}[\w-]{24}$/u;

/** Makes an id that nobody guesses and that tells the pool of its job, though not to clients. */
export function newJobId(pool: string): string {
  return `j_${poolTag(pool)}${randomBytes(18).toString("base64url")}`;
}

/** True if the job of the id is, or would be, in the pool. */
export function isJobOf(pool: string, id: string): boolean {
  return pattern.test(id) && id.startsWith(poolTag(pool), 2);
}

function poolTag(pool: string): string {
  return createHash("sha256").update(pool).digest("base64url").slice(0, tagLength);
}
