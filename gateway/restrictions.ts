import { timingSafeEqual } from "node:crypto";
import type { ApiCategory } from "./api-category.ts";

/** What a call must carry to use a restricted part of the API. */
export interface Restriction {
  /** Name of an HTTP header, or what follows `triton-grpc-protocol-` in the name of gRPC metadata. */
  readonly key: string;
  readonly value: string;
}

/** The parts that are restricted; all others are open. */
export type Restrictions = ReadonlyMap<ApiCategory, Restriction>;

export const noRestrictions: Restrictions = new Map();

/** True if the header's value is the one that is asked for; how long the comparison takes does not tell which part is. */
export function unlocks(given: string, { value }: Restriction): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(value)];
  return one.length === other.length && timingSafeEqual(one, other);
}
