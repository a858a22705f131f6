import { ConnectionError, ErrorCode } from "./wire.ts";

/** So often at once, and so often a second in the long run; the figures are those of nghttp2. */
const burst = 1000;
const perSecond = 33;

/**
 * Bounds how often a client does what costs us more than the client: it breaks a request off (CVE-2023-44487), has us do
 * so by a fault (CVE-2025-8671), or changes the windows of all.
 */
export class CostBudget {
  #left = burst;
  #since = 0;

  /** Throws a ConnectionError where there is none left. @param now in milliseconds */
  spend(now: number): void {
    const earned = ((now - this.#since) / 1000) * perSecond;
    this.#left = Math.min(burst, this.#left + earned) - 1;
    this.#since = now;
    if (this.#left >= 0) return;
    const text = `requests broken off and windows changed: given more than ${burst} at once and ${perSecond} a second`;
    throw new ConnectionError(ErrorCode.EnhanceYourCalm, text);
  }
}
