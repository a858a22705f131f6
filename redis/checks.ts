import { Cluster, type Redis as SingleRedis } from "ioredis";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Redis } from "./connection.ts";

/** What a Redis that ends keeps of what it answered: all, all but the last second, or nothing that could be relied on. */
export type Durability = "always" | "everysec" | "none" | "unknown";

/** What a Redis can be trusted with; a Cluster with what its weakest master can. */
export interface RedisFacts {
  readonly version: string;
  /** True when it may drop keys to make room. */
  readonly evicts: boolean;
  readonly durability: Durability;
  /** True when WAITAOF can tell that a write is on disk. */
  readonly waitAof: boolean;
}

/** Finds out what a Redis can be trusted with. */
export async function checkRedis(redis: Redis): Promise<RedisFacts> {
  const masters = redis instanceof Cluster ? redis.nodes("master") : [redis];
  const facts = await Promise.all(
    masters.map(async (master) => readFacts(await master.info(), await appendFsyncOf(master))),
  );
  return facts.reduce(weaker);
}

/** Refuses a Redis that would lose what is in a queue, or cannot do what a queue needs; the text tells what to set. */
export function requireQueueRedis({ version, evicts }: RedisFacts): void {
  if (isOlder(version, oldestVersion)) {
    throw unfit(`its version is ${version}, expected ${oldestVersion} or newer`);
  }
  if (evicts) {
    throw unfit(
      "it drops keys when its memory is full, expected that it never does: set maxmemory-policy to noeviction",
    );
  }
}

/**
 * Reads the answer to INFO.
 *
 * @param appendFsync what CONFIG says of it; undefined where nobody may ask
 */
export function readFacts(info: string, appendFsync: string | undefined): RedisFacts {
  const fields = new Map(info.split("\r\n").map(field));
  const version = fields.get("redis_version") ?? "0";
  const appendOnly = fields.get("aof_enabled") === "1";
  return {
    version,
    evicts: (fields.get("maxmemory_policy") ?? "noeviction") !== "noeviction",
    durability: appendOnly ? durabilityOf(appendFsync) : "none",
    waitAof: appendOnly && !isOlder(version, "7.2"),
  };
}

const oldestVersion = "6.2";
const durabilities: readonly Durability[] = ["none", "unknown", "everysec", "always"];

/** Providers forbid CONFIG; without it nobody knows how soon an append-only file is on disk. */
async function appendFsyncOf(master: SingleRedis): Promise<string | undefined> {
  try {
    const [, value] = await master.config("GET", "appendfsync");
    return value;
  } catch {
    return undefined;
  }
}

function field(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1)];
}

function durabilityOf(appendFsync: string | undefined): Durability {
  if (appendFsync === "always" || appendFsync === "everysec") return appendFsync;
  return appendFsync === undefined ? "unknown" : "none";
}

function weaker(one: RedisFacts, other: RedisFacts): RedisFacts {
  const level = Math.min(...[one, other].map((facts) => durabilities.indexOf(facts.durability)));
  return {
    version: isOlder(one.version, other.version) ? one.version : other.version,
    evicts: one.evicts || other.evicts,
    durability: durabilities[level] ?? "none",
    waitAof: one.waitAof && other.waitAof,
  };
}

/** By number, part by part: "6.10" is newer than "6.2". */
function isOlder(version: string, other: string): boolean {
  return version.localeCompare(other, "en", { numeric: true }) < 0;
}

function unfit(text: string): InferenceError {
  return new InferenceError(StatusCode.Unavailable, `Redis cannot keep queues: ${text}`);
}
