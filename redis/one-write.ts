import { Cluster } from "ioredis";
import type { Redis } from "./connection.ts";

/**
 * Has all commands that are sent from now until the promises of this turn have gone on leave in one write: a write is a
 * call of the system, and so is each read of an answer; both cost more than most commands. They keep their order. A
 * pipeline does the same, but each one costs as much as twenty commands on a connection that BullMQ has its scripts on.
 */
export function inOneWrite(redis: Redis): void {
  // Its commands find their servers one by one.
  if (redis instanceof Cluster) return;
  const { stream } = redis;
  if (stream.writableCorked > 0) return;
  stream.cork();
  // A tick that is asked for by a promise comes after all promises that are settled by then.
  queueMicrotask(() => process.nextTick(() => stream.uncork()));
}
