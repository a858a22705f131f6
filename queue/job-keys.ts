import type { KeyClaim } from "../protocol/job.ts";
import type { Redis } from "../redis/connection.ts";
import { digestOf } from "./job-record.ts";
import { names } from "./names.ts";

/**
 * Binds an idempotency key of an owner to a job, unless it is bound; gives what it is bound to.
 *
 * @param subject owner and key: what clients choose becomes part of a key in Redis as a digest only
 */
export async function claimKey(
  commands: Redis,
  subject: readonly [owner: string, key: string],
  claim: KeyClaim,
  keptMilliseconds: number,
): Promise<KeyClaim> {
  const key = names.idempotencyKey(digestOf(...subject));
  for (;;) {
    const bound = await commands.set(key, JSON.stringify(claim), "PX", keptMilliseconds, "NX");
    if (bound !== null) return claim;
    const text = await commands.get(key);
    // Between the two its time may have run out.
    if (text !== null) return JSON.parse(text);
  }
}
