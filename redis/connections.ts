import type { Redis } from "./connection.ts";

/** The connections of a process to one Redis, each with the role of its name. */
export interface RedisConnections {
  readonly commands: Redis;
  readonly blocking: Redis;
  readonly subscriber: Redis;
}
