/**
 * Where requests and results lie that are too large for a job's own entry. Redis can keep them, as PayloadStore does; so can
 * a bucket.
 */
export interface ObjectStore {
  /** Resolves when all of it is there; it may be forgotten after the given time, and no earlier. */
  put(key: string, bytes: Buffer, keptMilliseconds: number): Promise<void>;
  /** Undefined when it is not there, or no longer. */
  get(key: string): Promise<Buffer | undefined>;
  /** From now on it is kept for another time; nothing happens when it is not there. */
  keep(key: string, keptMilliseconds: number): Promise<void>;
  remove(...keys: readonly string[]): Promise<void>;
}
