import { setTimeout as sleep } from "node:timers/promises";

/** Who cannot reach Redis for so long has lost the job to another. */
const giveUpMilliseconds = 30_000;
const retryMilliseconds = 50;

/** Repeats what fails because Redis is away, for as long as it makes sense. */
export async function persist<T>(write: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + giveUpMilliseconds;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await sleep(retryMilliseconds);
    }
  }
}
