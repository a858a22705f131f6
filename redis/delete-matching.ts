import { Cluster } from "ioredis";
import type { Redis } from "./connection.ts";
import { execute } from "./execute.ts";

/** How many keys Redis looks at in one step: it answers nobody else meanwhile. */
const keysAtOnce = 1000;

/** Deletes every key whose name fits a pattern of `SCAN`, on all servers of a Cluster; others may come meanwhile. */
export async function deleteMatching(redis: Redis, pattern: string): Promise<void> {
  const servers = redis instanceof Cluster ? redis.nodes("master") : [redis];
  await Promise.all(
    servers.map(async (server) => {
      let cursor = "0";
      do {
        const [next, keys] = await server.scan(cursor, "MATCH", pattern, "COUNT", keysAtOnce);
        cursor = next;
        // One key a command: those of a Cluster's server lie in many slots.
        const pipeline = server.pipeline();
        for (const key of keys) pipeline.unlink(key);
        await execute(pipeline);
      } while (cursor !== "0");
    }),
  );
}

/** A text as a part of such a pattern that stands for itself. */
export function literally(text: string): string {
  return text.replaceAll(/[\\*?[\]]/gu, "\\$&");
}
