import type { QuotaState } from "../../protocol/error.ts";

/** One limit of a caller, and what is left of it. */
export interface Quota {
  /** As in `key-requests`. */
  readonly name: string;
  readonly limit: number;
  /** Whole points. */
  readonly left: number;
  /** `requests` unless said otherwise. */
  readonly unit?: "items" | "concurrent-requests";
  /** Absent for what is bounded at each moment. */
  readonly window?: {
    readonly seconds: number;
    /** Until what was spent is there again. */
    readonly secondsLeft: number;
  };
}

/**
 * Tells quotas in the words of draft-ietf-httpapi-ratelimit-headers-11: lists of structured fields. The draft registers no
 * unit for items of a batch; leaving the unit out would say that they are requests.
 */
export function quotaState(quotas: readonly Quota[]): QuotaState {
  return { policy: quotaPolicy(quotas), left: quotasLeft(quotas) };
}

/** The value of `RateLimit-Policy`, which is the same for all calls of a caller. */
export function quotaPolicy(quotas: readonly Quota[]): string {
  return quotas
    .map(({ name, limit, unit, window }) => {
      const units = unit === undefined ? "" : `;qu="${unit}"`;
      return `"${name}";q=${limit}${units}${window ? `;w=${window.seconds}` : ""}`;
    })
    .join(", ");
}

/** The value of `RateLimit`. */
export function quotasLeft(quotas: readonly Quota[]): string {
  return quotas
    .map(({ name, left, window }) => {
      return `"${name}";r=${left}${window ? `;t=${Math.ceil(window.secondsLeft)}` : ""}`;
    })
    .join(", ");
}
