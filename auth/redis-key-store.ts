import { randomUUID } from "node:crypto";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";
import { readKeyRecord } from "./key-record.ts";
import { type KeyStore, mostKeys } from "./key-store.ts";

/** A hash: the record of each key by its id, and a text that is another after each change. */
const hashName = "tidepool:api-keys";
const versionField = "version";
const channel = "tidepool:api-keys";

/**
 * Keeps keys in Redis, for all gateways.
 *
 * @param subscriber who has none learns of changes only by looking
 */
export function redisKeyStore(commands: Redis, subscriber?: Redis): KeyStore {
  return {
    name: "Redis",
    async version() {
      return (await commands.hget(hashName, versionField)) ?? "";
    },
    async all() {
      const entries = Object.entries(await commands.hgetall(hashName));
      return entries
        .filter(([id]) => id !== versionField)
        .map(([, text]) => readKeyRecord(JSON.parse(text)));
    },
    async replace(before, after) {
      const id = before?.id ?? after?.id ?? "";
      const [from, to] = [before, after].map((record) => (record ? JSON.stringify(record) : ""));
      const given = [hashName, id, from ?? "", to ?? "", versionField, randomUUID(), mostKeys];
      const done = await commands.eval(replaceScript, 1, ...given);
      if (done === -1) {
        throw new InferenceError(
          StatusCode.Unavailable,
          `keys in Redis: given ${mostKeys} already, expected room for one more`,
        );
      }
      if (done === 1) await commands.publish(channel, id);
      return done === 1;
    },
    ...(subscriber && { watch: (changed: () => void) => watch(subscriber, changed) }),
  };
}

function watch(subscriber: Redis, changed: () => void): () => void {
  const onMessage = (from: string): void => {
    if (from === channel) changed();
  };
  subscriber.on("message", onMessage);
  // Without it changes are still seen, when somebody looks.
  subscriber.subscribe(channel).catch(() => {});
  return () => subscriber.off("message", onMessage);
}

/** "" stands for no record. */
const replaceScript = `
local now = redis.call("hget", KEYS[1], ARGV[1]) or ""
if now ~= ARGV[2] then return 0 end
if now == "" and redis.call("hlen", KEYS[1]) > tonumber(ARGV[6]) then return -1 end
if ARGV[3] == "" then redis.call("hdel", KEYS[1], ARGV[1])
else redis.call("hset", KEYS[1], ARGV[1], ARGV[3]) end
redis.call("hset", KEYS[1], ARGV[4], ARGV[5])
return 1`;
