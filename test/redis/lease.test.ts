import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Redis } from "../../redis/connection.ts";
import { Lease, type LeaseOptions } from "../../redis/lease.ts";
import { eventually } from "../helpers/eventually.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { opening } from "./opening.ts";

describe("Lease", () => {
  const connect = opening();
  const leases: Lease[] = [];
  let server: RedisServer;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    redis = await connect(server.url, "commands");
    await redis.flushall();
  });
  afterEach(async () => {
    await Promise.all(leases.splice(0).map((lease) => lease.close()));
  });

  function ask(options: Partial<LeaseOptions> = {}): Lease {
    const lease = new Lease({ redis, key: "lease", lengthMilliseconds: 60_000, ...options });
    leases.push(lease);
    return lease;
  }

  /** Waits until the lease has asked once. */
  async function settled(lease: Lease, held: boolean): Promise<void> {
    await redis.ping();
    await eventually(() => expect(lease.held).toBe(held));
  }

  it("is held by the one that asks first", async () => {
    const changes: boolean[] = [];
    const first = ask({ onChange: (held) => changes.push(held) });
    const second = ask();
    await settled(first, true);
    await settled(second, false);
    expect(changes).toEqual([true]);
  });

  it("goes to another when it is given back", async () => {
    const first = ask();
    await settled(first, true);
    const second = ask({ lengthMilliseconds: 300 });
    await settled(second, false);
    await first.close();
    expect(first.held).toBe(false);
    await settled(second, true);
  });

  it("takes nothing from another when it is given back late", async () => {
    const first = ask();
    await settled(first, true);
    await redis.set("lease", "another");
    await first.close();
    expect(await redis.get("lease")).toBe("another");
  });

  it("is renewed while it is held", async () => {
    await settled(ask({ lengthMilliseconds: 3000 }), true);
    await eventually(async () => expect(await redis.pttl("lease")).toBeLessThan(2500));
    await eventually(async () => expect(await redis.pttl("lease")).toBeGreaterThan(2700));
  });

  it("is lost to one that took it meanwhile", async () => {
    const changes: boolean[] = [];
    const lease = ask({ lengthMilliseconds: 3000, onChange: (held) => changes.push(held) });
    await settled(lease, true);
    await redis.set("lease", "another", "PX", 100_000);
    await eventually(() => expect(changes).toEqual([true, false]));
    expect(await redis.get("lease")).toBe("another");
  });

  it("is no longer claimed when it may have run out, counted from before it was asked for", async () => {
    let now = 100;
    const lease = ask({ now: () => now });
    now = 5000;
    await settled(lease, true);
    now = 60_099;
    expect(lease.held).toBe(true);
    now = 60_100;
    expect(lease.held).toBe(false);
    expect(await redis.exists("lease")).toBe(1);
  });

  it("runs out while Redis is away, and is got again", async () => {
    const changes: boolean[] = [];
    const lease = ask({ lengthMilliseconds: 500, onChange: (held) => changes.push(held) });
    await settled(lease, true);
    await server.kill();
    await eventually(() => expect(changes.at(-1)).toBe(false));
    await server.restart();
    await eventually(() => expect(changes.at(-1)).toBe(true));
  });

  it("goes to another when its owner is killed", async () => {
    const owner = await startOwner(server.url);
    const changes: boolean[] = [];
    const heir = ask({ lengthMilliseconds: 500, onChange: (held) => changes.push(held) });
    await settled(heir, false);
    const exited = once(owner, "exit");
    owner.kill("SIGKILL");
    await exited;
    expect(heir.held).toBe(false);
    await settled(heir, true);
    expect(changes).toEqual([true]);
  });
});

/** Another process, once it holds the lease. */
async function startOwner(url: string): Promise<ReturnType<typeof spawn>> {
  const [connection, lease] = ["connection", "lease"].map((name) =>
    JSON.stringify(path.resolve(import.meta.dirname, `../../redis/${name}.ts`)),
  );
  const source = `
    import { connect } from ${connection};
    import { Lease } from ${lease};
    const redis = await connect(${JSON.stringify(url)}, "commands");
    const onChange = (held) => console.log(held ? "held" : "lost");
    new Lease({ redis, key: "lease", lengthMilliseconds: 3000, onChange });`;
  const owner = spawn(process.execPath, ["--input-type=module", "--eval", source], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await once(owner.stdout, "data");
  expect(String(said)).toBe("held\n");
  return owner;
}
