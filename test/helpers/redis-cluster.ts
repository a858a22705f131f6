import { Redis } from "ioredis";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

const slotCount = 16_384;

/** A real Redis Cluster: three masters without replicas. */
export interface RedisCluster {
  readonly url: string;
  readonly masters: readonly [RedisServer, RedisServer, RedisServer];
  stop(): Promise<void>;
}

/**
 * Starts the masters, shares the slots out, and waits until all of them agree that the cluster works.
 *
 * @param extra more arguments of each redis-server
 */
export async function startRedisCluster(extra: readonly string[] = []): Promise<RedisCluster> {
  // One after the other, so that each has taken its ports before the next looks for free ones.
  const masters = [
    await startMaster(extra),
    await startMaster(extra),
    await startMaster(extra),
  ] as const;
  await Promise.all(
    masters.map(({ admin }, index) => admin.cluster("ADDSLOTSRANGE", ...slots(index))),
  );
  // Whom one has met the others get to know.
  const [{ admin: first }] = masters;
  await Promise.all(
    masters.map(({ server, busPort }) => first.cluster("MEET", "127.0.0.1", server.port, busPort)),
  );
  await Promise.all(masters.map(({ admin }) => untilWorking(admin)));
  for (const { admin } of masters) admin.disconnect();
  const [one, two, three] = masters;
  const servers = [one.server, two.server, three.server] as const;
  return {
    url: `redis-cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    masters: servers,
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

interface Master {
  readonly server: RedisServer;
  readonly busPort: number;
  readonly admin: Redis;
}

async function startMaster(extra: readonly string[]): Promise<Master> {
  // The default, 10,000 above the other, may be beyond the last port.
  const busPort = await freePort();
  const cluster = ["--cluster-enabled", "yes", "--cluster-port", String(busPort)];
  const server = await startRedis({
    extra: [...cluster, "--cluster-node-timeout", "2000", ...extra],
  });
  return { server, busPort, admin: new Redis(server.port, "127.0.0.1") };
}

/** The first and the last slot of a master. */
function slots(index: number): [number, number] {
  return [firstSlot(index), firstSlot(index + 1) - 1];
}

function firstSlot(index: number): number {
  return Math.round((index * slotCount) / 3);
}

function untilWorking(admin: Redis): Promise<void> {
  return eventually(async () => {
    const info = await admin.cluster("INFO");
    if (!/cluster_state:ok[^]*cluster_known_nodes:3/u.test(info)) throw new Error(info);
  });
}
