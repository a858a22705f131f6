import { afterEach } from "vitest";
import { connect, type ConnectOptions, type Redis } from "../../redis/connection.ts";
import type { RedisRole } from "../../redis/roles.ts";

/** Gives a `connect` whose connections end with the test. */
export function opening(): typeof connect {
  const opened: Redis[] = [];
  afterEach(() => {
    for (const redis of opened.splice(0)) redis.disconnect();
  });
  return async (url: string, role: RedisRole, options?: ConnectOptions) => {
    const redis = await connect(url, role, options);
    opened.push(redis);
    return redis;
  };
}
