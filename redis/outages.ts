import { Cluster, type Redis as SingleRedis } from "ioredis";

/** Who wants to know when a server goes away and comes back: once each, however many attempts lie between. */
export interface OutageListener {
  /** @param text as in "Redis at 127.0.0.1:6379 is away: connect ECONNREFUSED" */
  readonly onAway?: (text: string) => void;
  readonly onBack?: (text: string) => void;
}

/**
 * Tells of the outages of a connection that works now; of a Cluster's servers one by one, as far as they are used.
 * Reconnecting goes on by itself.
 *
 * @param name the server, or the Cluster, as people read it
 */
export function watchOutages(
  redis: SingleRedis | Cluster,
  name: string,
  listener: OutageListener,
): void {
  const outages = new Outages(listener);
  watch(redis, name, outages);
  if (!(redis instanceof Cluster)) return;
  for (const node of redis.nodes()) watchNode(node, outages);
  redis.on("+node", (node: SingleRedis) => watchNode(node, outages));
}

/** The reason in an error of the network or of Redis. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "the connection was closed";
  // Where a name has several addresses, the error of all of them has a code but no text.
  return error.message || ("code" in error ? String(error.code) : error.name);
}

class Outages {
  readonly #listener: OutageListener;
  readonly #away = new Set<string>();

  constructor(listener: OutageListener) {
    this.#listener = listener;
  }

  begin(name: string, error: unknown): void {
    if (this.#away.has(name)) return;
    this.#away.add(name);
    this.#listener.onAway?.(`Redis at ${name} is away: ${reasonOf(error)}`);
  }

  end(name: string): void {
    if (this.#away.delete(name)) this.#listener.onBack?.(`Redis at ${name} is back`);
  }
}

function watch(redis: SingleRedis | Cluster, name: string, outages: Outages): void {
  let error: unknown;
  redis.on("error", (cause: unknown) => (error = cause));
  redis.on("reconnecting", () => {
    outages.begin(name, error);
    error = undefined;
  });
  redis.on("ready", () => outages.end(name));
}

/** A Cluster drops the connection to a server that is away, and makes a new one for it when it is needed. */
function watchNode(node: SingleRedis, outages: Outages): void {
  const name = `${node.options.host}:${node.options.port}`;
  node.on("error", (error: unknown) => outages.begin(name, error));
  node.on("ready", () => outages.end(name));
}
