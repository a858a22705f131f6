/**
 * Runs tasks side by side. The first that fails stops the others by their signal, and is what this rejects with when all
 * of them have ended, so that none still touches what is cleaned up then.
 */
export async function together<T>(
  outer: AbortSignal,
  tasks: readonly ((signal: AbortSignal) => Promise<T>)[],
): Promise<readonly T[]> {
  const failed = new AbortController();
  const signal = AbortSignal.any([outer, failed.signal]);
  const run = async (task: (signal: AbortSignal) => Promise<T>): Promise<readonly T[]> => {
    try {
      signal.throwIfAborted();
      return [await task(signal)];
    } catch (error) {
      failed.abort(error);
      return [];
    }
  };
  const results = await Promise.all(tasks.map(run));
  failed.signal.throwIfAborted();
  return results.flat();
}
