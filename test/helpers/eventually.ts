import { vi } from "vitest";

/** Waits until the assertion holds, as long as a busy machine may need. */
export function eventually<T>(
  assertion: () => T | Promise<T>,
  timeoutMilliseconds = 10_000,
): Promise<T> {
  return vi.waitFor(assertion, { timeout: timeoutMilliseconds, interval: 5 });
}
