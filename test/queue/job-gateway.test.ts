import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Job, NewJob } from "../../protocol/job.ts";
import { Demand } from "../../queue/demand.ts";
import { GatewayJobs } from "../../queue/job-gateway.ts";
import { names } from "../../queue/names.ts";
import { PayloadStore } from "../../queue/payload-store.ts";
import { PoolChannel } from "../../queue/pool-channel.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { eventually } from "../helpers/eventually.ts";
import { keyOf, QueueStand, type StandGateway } from "../helpers/queue-stand.ts";
import { startRedisCluster } from "../helpers/redis-cluster.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";
import { requestFor } from "../helpers/requests.ts";
import { startSpanCollector } from "../helpers/span-collector.ts";
import { jobCases, type JobStand, type JobStandLimits, standLimits } from "../serving/job-cases.ts";
import { acceptingTraceparent, jobTraceCases, tracerTo } from "../serving/job-trace-cases.ts";

function jobsOf(
  { versions, redis: { commands } }: StandGateway,
  { model }: RunningVersion,
  limits: JobStandLimits = standLimits,
): GatewayJobs {
  return new GatewayJobs({
    commands,
    objects: new PayloadStore(commands),
    links: versions.links,
    linkOf: (name) => versions.linkOf(name),
    keyOf: (served) => versions.keyOf(served),
    engine: { model: () => model },
    limits,
    tracer: limits.tracer,
    durability: "none",
  });
}

/** Jobs of a gateway, and a pool worker that runs them. */
async function startQueueJobs(url: string, limits = standLimits): Promise<JobStand> {
  const stand = await QueueStand.open(url);
  const gateway = await stand.gateway();
  const version = await stand.serve(gateway);
  const poolWorker = await stand.poolWorker();
  const jobs = jobsOf(gateway, version, limits);
  const close = async (): Promise<void> => {
    jobs.close();
    for (const execution of poolWorker.executions) execution.finish();
    await stand.close();
  };
  return { jobs, model: version.model, executions: () => poolWorker.executions, close };
}

describe("GatewayJobs", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  describe("with a pool worker", () => {
    jobCases((limits) => startQueueJobs(redis.url, limits));
  });

  describe("with traces", () => {
    jobTraceCases((tracer) => startQueueJobs(redis.url, { ...standLimits, tracer }));
  });

  it("runs a job on a Cluster", async () => {
    const cluster = await startRedisCluster();
    const { jobs, model, executions, close } = await startQueueJobs(cluster.url);
    const { id } = await jobs.submit(jobs.newId("echo"), {
      principal: anonymous,
      request: requestFor(model, [4]),
      binaryOutputs: "all",
      keyed: false,
    });
    await eventually(() => expect(executions()).toHaveLength(1));
    executions()[0]?.finish();
    await eventually(async () =>
      expect(await jobs.find(anonymous, id)).toMatchObject({ state: "done" }),
    );
    expect((await jobs.list(anonymous, 1)).jobs).toMatchObject([{ id }]);
    await close();
    await cluster.stop();
  });

  describe("in Redis", () => {
    let stand: QueueStand;
    let gateway: StandGateway;
    let version: RunningVersion;
    let jobs: GatewayJobs;
    beforeEach(async () => {
      stand = await QueueStand.open(redis.url);
      gateway = await stand.gateway();
      version = await stand.serve(gateway);
      jobs = jobsOf(gateway, version);
    });
    afterEach(async () => {
      jobs.close();
      await stand.close();
    });

    function submit(elements = 4, more: Partial<NewJob> = {}): Promise<Job> {
      return jobs.submit(jobs.newId("echo"), {
        principal: anonymous,
        request: requestFor(version.model, [elements]),
        binaryOutputs: "all",
        keyed: false,
        ...more,
      });
    }

    function untilState({ id }: Job, state: string): Promise<unknown> {
      return eventually(async () =>
        expect(await jobs.find(anonymous, id)).toMatchObject({ state }),
      );
    }

    it("counts each unfinished job once in demand, also when its gateway is gone", async () => {
      const demand = new Demand(stand.pool, stand.commands);
      const first = await submit();
      await submit();
      gateway.die();
      const later = Date.now() + 60_000;
      expect(await demand.total(later)).toEqual({ requests: 2, since: first.createdAt });
    });

    it("counts a job no longer that has ended", async () => {
      const demand = new Demand(stand.pool, stand.commands);
      const job = await submit();
      await jobs.cancel(anonymous, job.id);
      expect(await demand.total(Date.now())).toMatchObject({ requests: 0 });
    });

    it("runs the jobs of a gateway that is gone, and tells another one", async () => {
      const job = await submit();
      gateway.die();
      await stand.commands.del(names.gateway(gateway.name));
      const other = await stand.gateway();
      jobs.close();
      jobs = jobsOf(other, await stand.serve(other));
      const poolWorker = await stand.poolWorker();
      await eventually(() => expect(poolWorker.executions).toHaveLength(1));
      poolWorker.executions[0]?.finish();
      await untilState(job, "done");
    });

    it("has one of the other gateways tell the trace of a job whose gateway is gone", async () => {
      const collector = await startSpanCollector();
      const tracers = [tracerTo(collector), tracerTo(collector), tracerTo(collector)];
      const others: GatewayJobs[] = [];
      for (const tracer of tracers) {
        const other = await stand.gateway();
        others.push(jobsOf(other, await stand.serve(other), { ...standLimits, tracer }));
      }
      await submit(4, { traceparent: acceptingTraceparent });
      gateway.die();
      jobs.close();
      const poolWorker = await stand.poolWorker();
      await eventually(() => expect(poolWorker.executions).toHaveLength(1));
      poolWorker.executions[0]?.finish();
      const spans = (): string[] => collector.spans.map(({ name }) => name);
      await eventually(() => expect(spans()).toContain("InferJob"));
      for (const other of others) other.close();
      // All that is traced is sent then.
      await Promise.all(tracers.map((tracer) => tracer.close()));
      expect(spans().filter((name) => name === "InferJob")).toHaveLength(1);
      await collector.stop();
    });

    it("keeps a large request and a large result beside the job, and no request longer than needed", async () => {
      const elements = 300_000;
      const job = await submit(elements);
      const payloads = (): Promise<number> =>
        stand.commands.exists(
          names.jobRequest(stand.pool, job.id),
          names.jobResult(stand.pool, job.id),
        );
      expect(await payloads()).toBe(1);
      const poolWorker = await stand.poolWorker();
      await eventually(() => expect(poolWorker.executions).toHaveLength(1));
      poolWorker.executions[0]?.finish();
      await untilState(job, "done");
      const answer = await jobs.answer(anonymous, job.id);
      expect(answer?.response.outputs[0]?.bytes.byteLength).toBe(4 * elements);
      await eventually(async () =>
        expect(await stand.commands.exists(names.jobRequest(stand.pool, job.id))).toBe(0),
      );
      const key = names.job(stand.pool, job.id);
      expect(await stand.commands.hexists(key, "request")).toBe(0);
      expect(await stand.commands.pttl(key)).toBeGreaterThan(0);
    });

    it("keeps the large request of a failed job as long as the job, and no longer", async () => {
      const poolWorker = await stand.poolWorker();
      const job = await submit(300_000);
      await eventually(() => expect(poolWorker.executions).toHaveLength(1));
      poolWorker.executions[0]?.fail(new InferenceError(StatusCode.InvalidArg, "no number"));
      await untilState(job, "failed");
      const request = names.jobRequest(stand.pool, job.id);
      const { failedMilliseconds } = standLimits;
      await eventually(async () => {
        expect(await stand.commands.pttl(request)).toBeGreaterThan(0);
        expect(await stand.commands.pttl(request)).toBeLessThanOrEqual(failedMilliseconds);
      });
      await jobs.replay(new Call(anonymous, 0), job.id);
      expect(await stand.commands.pttl(request)).toBeGreaterThan(failedMilliseconds);
      await eventually(() => expect(poolWorker.executions).toHaveLength(2));
      poolWorker.executions[1]?.finish();
      await untilState(job, "done");
    });

    it("brings a job back that is in no queue, because its gateway died too early", async () => {
      const job = await submit();
      const [link] = gateway.versions.links;
      await link?.queue.remove(job.id);
      await stand.commands.hset(names.job(stand.pool, job.id), "created", Date.now() - 60_000);
      const poolWorker = await stand.poolWorker();
      await eventually(() => expect(poolWorker.executions).toHaveLength(1));
      poolWorker.executions[0]?.finish();
      await untilState(job, "done");
    });

    it("forgets a job that Redis has lost", async () => {
      const job = await submit();
      await stand.commands.del(names.job(stand.pool, job.id));
      const unfinished = names.unfinishedJobs(stand.pool);
      await eventually(async () => expect(await stand.commands.zcard(unfinished)).toBe(0));
    });

    it("tells how far the start is that a job waits for", async () => {
      const { promise: mayStart, resolve: start } = Promise.withResolvers<void>();
      const { commands, subscriber } = gateway.redis;
      const channel = await PoolChannel.open(stand.pool, commands, subscriber);
      const poolWorker = await stand.poolWorker({ starting: () => mayStart });
      const job = await submit();
      await untilState(job, "starting");
      channel.publish({
        type: "progress",
        version: keyOf("echo"),
        phase: "fetch",
        fetchedBytes: 42,
        totalBytes: 100,
      });
      await untilState(job, "fetching");
      expect(await jobs.find(anonymous, job.id)).toMatchObject({ percent: 42 });
      channel.publish({ type: "progress", version: keyOf("echo"), phase: "load" });
      await untilState(job, "loading");
      start();
      await untilState(job, "running");
      poolWorker.executions[0]?.finish();
      await untilState(job, "done");
    });

    it("shows no names of clients in keys", async () => {
      const principal = { name: "alice@example.org", tenant: "a tenant" };
      await jobs.claim(principal, "a key", { id: jobs.newId("echo"), digest: "" });
      const keys = await stand.commands.keys("*");
      expect(keys.filter((key) => /alice|tenant|a key/u.test(key))).toEqual([]);
    });

    it("rejects with UNAVAILABLE while Redis cannot be reached", async () => {
      const job = await submit();
      gateway.die();
      await expect(jobs.find(anonymous, job.id)).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await expect(submit()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    });
  });
});
