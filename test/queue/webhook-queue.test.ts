import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { anonymous } from "../../protocol/call.ts";
import type { Job } from "../../protocol/job.ts";
import type { WebhookSender } from "../../protocol/webhook.ts";
import { GatewayJobs } from "../../queue/job-gateway.ts";
import { names } from "../../queue/names.ts";
import { PayloadStore } from "../../queue/payload-store.ts";
import { WebhookQueue } from "../../queue/webhook-queue.ts";
import { connect } from "../../redis/connection.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { eventually } from "../helpers/eventually.ts";
import { QueueStand, type StandGateway, type StandPoolWorker } from "../helpers/queue-stand.ts";
import { startRedisCluster } from "../helpers/redis-cluster.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { requestFor } from "../helpers/requests.ts";
import { SilentLog } from "../helpers/silent-log.ts";
import { startReceiver, type WebhookReceiver } from "../helpers/webhook-receiver.ts";
import { localWebhooks } from "../helpers/webhooks.ts";
import { type JobStand, standLimits } from "../serving/job-cases.ts";
import { webhookCases } from "../serving/webhook-cases.ts";

function jobsOf(
  { versions, redis: { commands } }: StandGateway,
  { model }: RunningVersion,
  webhooks: WebhookSender,
): GatewayJobs {
  return new GatewayJobs({
    commands,
    objects: new PayloadStore(commands),
    links: versions.links,
    linkOf: (name) => versions.linkOf(name),
    keyOf: (served) => versions.keyOf(served),
    engine: { model: () => model },
    limits: standLimits,
    durability: "none",
    webhooks,
  });
}

function noName(): Promise<never> {
  return Promise.reject(new Error("no such name"));
}

async function deliver(
  url: string,
  { versions, redis: { commands } }: StandGateway,
  sender: WebhookSender,
): Promise<{ readonly queue: WebhookQueue; close(): Promise<void> }> {
  const blocking = await connect(url, "blocking");
  const { links } = versions;
  const queue = new WebhookQueue({ commands, blocking, links, sender, log: new SilentLog() });
  const close = async (): Promise<void> => {
    await queue.close();
    blocking.disconnect();
  };
  return { queue, close };
}

/** Jobs of a gateway that delivers webhooks, and a pool worker that runs them. */
async function startWebhookJobs(url: string, sender: WebhookSender): Promise<JobStand> {
  const stand = await QueueStand.open(url);
  const gateway = await stand.gateway();
  const version = await stand.serve(gateway);
  const poolWorker = await stand.poolWorker();
  const jobs = jobsOf(gateway, version, sender);
  const delivering = await deliver(url, gateway, sender);
  const close = async (): Promise<void> => {
    jobs.close();
    await delivering.close();
    for (const execution of poolWorker.executions) execution.finish();
    await stand.close();
  };
  return { jobs, model: version.model, executions: () => poolWorker.executions, close };
}

describe("WebhookQueue", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  describe("with one gateway", () => {
    webhookCases((sender) => startWebhookJobs(redis.url, sender));
  });

  describe("with several gateways", () => {
    let stand: QueueStand;
    let receiver: WebhookReceiver;
    let poolWorker: StandPoolWorker;
    let version: RunningVersion;
    const closing: (() => Promise<void> | void)[] = [];
    afterEach(async () => {
      for (const close of closing.splice(0).toReversed()) await close();
    });

    /** The first one, which takes the jobs and delivers nothing. */
    async function started(): Promise<{ gateway: StandGateway; jobs: GatewayJobs }> {
      receiver = await startReceiver();
      stand = await QueueStand.open(redis.url);
      closing.push(
        () => receiver.close(),
        () => stand.close(),
      );
      const gateway = await stand.gateway();
      version = await stand.serve(gateway);
      poolWorker = await stand.poolWorker();
      const jobs = jobsOf(gateway, version, localWebhooks([receiver.port]));
      closing.push(() => jobs.close());
      return { gateway, jobs };
    }

    async function another(sender?: WebhookSender): Promise<WebhookQueue> {
      const gateway = await stand.gateway();
      const local = sender ?? localWebhooks([receiver.port]);
      const delivering = await deliver(redis.url, gateway, local);
      closing.push(() => delivering.close());
      return delivering.queue;
    }

    function submit(jobs: GatewayJobs): Promise<Job> {
      return jobs.submit(jobs.newId("echo"), {
        principal: anonymous,
        request: requestFor(version.model, [4]),
        binaryOutputs: "all",
        keyed: false,
        webhook: receiver.origin,
      });
    }

    async function ended(jobs: GatewayJobs): Promise<Job> {
      const job = await submit(jobs);
      await eventually(async () => {
        for (const execution of poolWorker.executions) execution.finish();
        expect(await jobs.find(anonymous, job.id)).toMatchObject({ state: "done" });
      });
      return job;
    }

    function undelivered(): Promise<number> {
      return stand.commands.zcard(names.undeliveredWebhooks(stand.pool));
    }

    it("delivers what ended while nobody was there to deliver, once", async () => {
      const { gateway, jobs } = await started();
      const { id } = await ended(jobs);
      gateway.die();
      expect(await undelivered()).toBe(1);
      const queues = [await another(), await another(), await another()];
      await eventually(async () => expect(await undelivered()).toBe(0));
      expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual([
        expect.stringContaining(id),
      ]);
      const observed = await queues[0]?.observe();
      expect(observed).toMatchObject({ undelivered: 0, since: Infinity });
      expect(observed?.attempts.delivered).toBeGreaterThan(0);
    });

    it("delivers each once where several gateways hear of it", async () => {
      const { jobs } = await started();
      await another();
      await another();
      const all = [];
      for (let i = 0; i < 5; i++) all.push(await ended(jobs));
      await eventually(async () => expect(await undelivered()).toBe(0));
      const ids = receiver.received.map(({ headers }) => headers["webhook-id"]?.slice(0, 32));
      expect(ids).toHaveLength(all.length);
      expect(new Set(ids)).toEqual(new Set(all.map(({ id }) => id)));
    });

    it("delivers what Redis has lost from the queue", async () => {
      const { jobs } = await started();
      const retries = { attempts: 4, firstMilliseconds: 60_000 };
      const sender = localWebhooks([receiver.port], { retries, resolve: noName });
      await another({
        maxUndelivered: 1,
        check: (url, tenant) => sender.check(url, tenant),
        attempt: (delivery, attempt) =>
          sender.attempt({ ...delivery, url: delivery.url.replace("127.0.0.1", "away") }, attempt),
      });
      const { id } = await ended(jobs);
      await eventually(async () =>
        expect(await jobs.deliveries(anonymous, id)).toMatchObject([{ outcome: "retry" }]),
      );
      await closing.pop()?.();
      const keys = await stand.commands.call("KEYS", `${names.webhookQueuePrefix}:*`);
      await stand.commands.del(...[keys].flat().map(String));
      await another();
      await eventually(() => expect(receiver.received).toHaveLength(1));
    });

    it("waits for a target that has as many as it may, and counts no attempt", async () => {
      const { jobs } = await started();
      const sender = localWebhooks([receiver.port]);
      let refusals = 2;
      await another({
        maxUndelivered: 1,
        check: (url, tenant) => sender.check(url, tenant),
        attempt: async (delivery, attempt) =>
          refusals-- > 0 ? undefined : sender.attempt(delivery, attempt),
      });
      const { id } = await ended(jobs);
      await eventually(async () =>
        expect(await jobs.deliveries(anonymous, id)).toMatchObject([
          { attempt: 1, outcome: "delivered" },
        ]),
      );
      expect(refusals).toBeLessThan(0);
    });

    it("tells how much is not delivered, and since when", async () => {
      const { jobs } = await started();
      await receiver.close();
      const queue = await another(
        localWebhooks([receiver.port], { retries: { attempts: 4, firstMilliseconds: 60_000 } }),
      );
      const job = await ended(jobs);
      await eventually(async () =>
        expect(await jobs.deliveries(anonymous, job.id)).toMatchObject([
          { outcome: "retry", why: "connection failed: ECONNREFUSED" },
        ]),
      );
      const { endedAt } = (await jobs.find(anonymous, job.id)) ?? {};
      expect(await queue.observe()).toMatchObject({ undelivered: 1, since: endedAt });
      receiver = await startReceiver();
    });

    it("forgets a webhook of whose job nothing is left", async () => {
      const { jobs } = await started();
      const { id } = await ended(jobs);
      await stand.commands.del(names.job(stand.pool, id));
      await another();
      await eventually(async () => expect(await undelivered()).toBe(0));
      expect(receiver.received).toEqual([]);
      // It counts no longer against its tenant.
      expect(await stand.commands.exists(names.webhooksOfTenants(stand.pool))).toBe(0);
    });
  });

  it("delivers on a Cluster", async () => {
    const cluster = await startRedisCluster();
    const receiver = await startReceiver();
    const sender = localWebhooks([receiver.port]);
    const { jobs, model, executions, close } = await startWebhookJobs(cluster.url, sender);
    const { id } = await jobs.submit(jobs.newId("echo"), {
      principal: anonymous,
      request: requestFor(model, [4]),
      binaryOutputs: "all",
      keyed: false,
      webhook: receiver.origin,
    });
    await eventually(() => expect(executions()).toHaveLength(1));
    executions()[0]?.finish();
    await eventually(async () =>
      expect(await jobs.deliveries(anonymous, id)).toMatchObject([{ outcome: "delivered" }]),
    );
    expect(receiver.received).toHaveLength(1);
    await close();
    await receiver.close();
    await cluster.stop();
  });
});
