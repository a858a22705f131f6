import { isIP } from "node:net";
import { Cluster, Redis as SingleRedis } from "ioredis";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { type OutageListener, reasonOf, watchOutages } from "./outages.ts";
import { type RedisRole, roleOptions } from "./roles.ts";
import { parseRedisUrl, type RedisAddress } from "./url.ts";

/** A connection to one Redis or to a Redis Cluster: the same commands. Who asked for it ends it, with `disconnect()`. */
export type Redis = SingleRedis | Cluster;

/** What may be said about a connection beside where it goes and what it is for. */
export interface ConnectOptions extends OutageListener {
  /** How long the first connection may take; later ones are tried for ever. @defaultValue 10_000 */
  readonly timeoutMilliseconds?: number;
}

/**
 * Opens a connection for one kind of use and waits until it can be used. Fails with UNAVAILABLE when Redis refuses it, or
 * cannot be reached in time; from then on it comes back by itself, and an outage is told once.
 */
export async function connect(
  url: string,
  role: RedisRole,
  options: ConnectOptions = {},
): Promise<Redis> {
  const address = parseRedisUrl(url);
  // Any server of a Cluster hears what is published; ioredis' own subscriber of a Cluster may come back without its channels.
  const single = !address.cluster || role === "subscriber";
  const redis = single ? openSingle(address, role) : openCluster(address, role);
  const name = address.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
  await untilUsable(redis, name, options.timeoutMilliseconds ?? 10_000);
  watchOutages(redis, name, options);
  return redis;
}

/** False while it is away, or so lately back that it takes no commands yet. */
export function isUsable(redis: Redis): boolean {
  return redis.status === "ready";
}

/** Another connection to the same place, which is used in the same way. Who asked for it ends it. */
export function duplicate(redis: Redis): Redis {
  const copy = redis instanceof Cluster ? redis.duplicate() : redis.duplicate();
  // Each command that fails rejects on its own.
  copy.on("error", () => {});
  return copy;
}

const attemptMilliseconds = 5000;
const keepAliveMilliseconds = 5000;
const longestBackoffMilliseconds = 1000;

/** Where there are several servers it goes to the next when one is away. */
function openSingle(address: RedisAddress, role: RedisRole): SingleRedis {
  const { nodes, database } = address;
  const redis: SingleRedis = new SingleRedis({
    ...serverOptions(address, role),
    ...nodes[0],
    db: database,
    retryStrategy(attempts) {
      // Read at the next attempt.
      Object.assign(redis.options, nodes[attempts % nodes.length]);
      return backoffMilliseconds(attempts);
    },
  });
  return redis;
}

function openCluster(address: RedisAddress, role: RedisRole): Cluster {
  const { enableOfflineQueue = true, ...redisOptions } = serverOptions(address, role);
  return new Cluster([...address.nodes], {
    enableOfflineQueue,
    clusterRetryStrategy: backoffMilliseconds,
    // Sends a command again whose answer was lost, which only those may want that wait.
    retryDelayOnFailover: enableOfflineQueue ? 100 : 0,
    slotsRefreshTimeout: attemptMilliseconds,
    // A certificate is for a name, which must not become an address before it is compared.
    ...(address.tls && { dnsLookup: (host, found) => found(null, host) }),
    redisOptions,
  });
}

function serverOptions(address: RedisAddress, role: RedisRole) {
  const { username, password, tls, cluster, nodes } = address;
  const host = nodes[0]?.host ?? "";
  return {
    ...roleOptions[role],
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    // A provider may tell its customers apart by the name that TLS asks for.
    ...(tls && { tls: cluster || isIP(host) ? {} : { servername: host } }),
    connectTimeout: attemptMilliseconds,
    keepAlive: keepAliveMilliseconds,
  };
}

function backoffMilliseconds(attempts: number): number {
  return Math.min(attempts * 50, longestBackoffMilliseconds);
}

async function untilUsable(redis: Redis, name: string, timeoutMilliseconds: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let last: unknown;
  // For good: an error that nobody listens to would be printed.
  redis.on("error", (error: Error) => {
    last = "lastNodeError" in error ? error.lastNodeError : error;
    if (isRefusal(last)) reject(unavailable(`Redis at ${name} refuses the connection`, last));
  });
  redis.once("ready", resolve);
  const timer = setTimeout(
    () =>
      reject(unavailable(`Redis at ${name} was not reached in ${timeoutMilliseconds} ms`, last)),
    timeoutMilliseconds,
  );
  try {
    await promise;
    // A Cluster opens the way to a server with the first command for it, and refuses the next one until it is open.
    if (redis instanceof Cluster)
      await Promise.allSettled(redis.nodes().map((node) => node.ping()));
  } catch (error) {
    redis.disconnect();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** What waiting does not heal: a wrong password or database, a server that is no Cluster. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(?:WRONGPASS|NOAUTH|NOPERM|ERR) /u.test(error.message);
}

function unavailable(text: string, cause: unknown): InferenceError {
  return new InferenceError(StatusCode.Unavailable, `${text}: ${reasonOf(cause)}`, { cause });
}
