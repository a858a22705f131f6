import { Job, type Queue } from "bullmq";

/** In one go; each costs Redis as much as a job that is added. */
const atOnce = 64;

/** Gives jobs that wait other places in their queue. What is no longer there, or cannot be reached, is left alone. */
export async function setPriorities(
  queue: Queue,
  priorities: Iterable<readonly [id: string, priority: number]>,
): Promise<void> {
  let pending: Promise<void>[] = [];
  for (const [id, priority] of priorities) {
    // Only its id and its queue are needed.
    const job = new Job(queue, "", {}, {}, id);
    pending.push(job.changePriority({ priority }).catch(() => {}));
    if (pending.length < atOnce) continue;
    await Promise.all(pending);
    pending = [];
  }
  await Promise.all(pending);
}
