import type { FetchOptions, FetchProgress } from "./model-store.ts";

export type Tell = (progress: FetchProgress) => void;

/** One fetch that many wait for: all of them see its progress, and it is given up when the last of them has gone. */
export class SharedFetch {
  readonly #controller = new AbortController();
  readonly #listeners = new Set<Tell>();
  readonly #done: Promise<void>;
  readonly #onLeft: () => void;
  #waiting = 0;

  /** @param onLeft nobody waits any more: who comes now needs a fetch of his own */
  constructor(work: (signal: AbortSignal, tell: Tell) => Promise<void>, onLeft: () => void) {
    this.#onLeft = onLeft;
    this.#done = work(this.#controller.signal, (progress) => {
      for (const listener of this.#listeners) listener(progress);
    });
    // Those who wait are told; there may be none by then.
    this.#done.catch(() => {});
  }

  async wait({ onProgress, signal }: FetchOptions): Promise<void> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const abort = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    const listener: Tell = (progress) => onProgress?.(progress);
    this.#listeners.add(listener);
    this.#waiting++;
    try {
      await Promise.race([this.#done, aborted]);
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#listeners.delete(listener);
      if (--this.#waiting === 0) {
        this.#onLeft();
        this.#controller.abort();
      }
    }
  }
}
