import { largestLimit } from "../../auth/limits/limits.ts";
import { flag, optional } from "../flag.ts";
import { integer, path } from "../flag-type.ts";

/** How much may be asked at a time. */
export const limitFlags = {
  limits: optional(
    path,
    "YAML file with limits of each key, each tenant, and tenants by name; those of a key itself win.",
  ),
  "max-requests-in-flight": flag(
    integer(1),
    32_768,
    "Requests for work that may be under way here at a time; others are refused at once.",
  ),
  "max-model-requests-in-flight": flag(
    integer(1),
    16_384,
    "The same for one model, so that one whose requests pile up leaves room for others.",
  ),
  "max-bytes-in-flight": optional(
    integer(1),
    "Bytes that the bodies of these requests may have together; half of the memory without it.",
  ),
};

/** What `tidepool keys` is told of the limits of a key. */
export const keyLimitFlags = {
  "requests-per-second": optional(
    integer(1, largestLimit),
    "Requests that the key's holder may send in a second; no limit without it, as with the others.",
  ),
  "items-per-second": optional(
    integer(1, largestLimit),
    "Items that they may have in a second: a batch counts as many as it has.",
  ),
  "in-flight": optional(integer(1, largestLimit), "Requests that may be under way at a time."),
  "daily-items": optional(integer(1, largestLimit), "Items from midnight to midnight, in UTC."),
};
