import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";
import { queueAway } from "./queue-away.ts";

/** What a gateway forgets when it is told to. */
export interface CacheMemory {
  forget(model: string): void;
  forgetAll(): void;
}

/**
 * Lets all gateways forget what one of them is asked to forget. A gateway that may have missed a word forgets everything.
 *
 * @returns tells all gateways, this one too
 */
export async function openCacheFlushes(
  commands: Redis,
  subscriber: Redis,
  memory: CacheMemory,
): Promise<(model: string) => Promise<void>> {
  subscriber.on("message", (channel: string, model: string) => {
    if (channel === names.cacheFlushChannel) memory.forget(model);
  });
  await subscriber.subscribe(names.cacheFlushChannel);
  subscriber.on("ready", () => memory.forgetAll());
  return async (model) => {
    memory.forget(model);
    await commands.publish(names.cacheFlushChannel, model).catch((cause: unknown) => {
      throw queueAway(cause);
    });
  };
}
