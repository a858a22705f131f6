import { afterEach, expect, it } from "vitest";
import { anonymous, Call, type Principal } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { type Job, type Jobs, type NewJob } from "../../protocol/job.ts";
import type { ServedModel } from "../../protocol/served-model.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import { eventually } from "../helpers/eventually.ts";
import type { HandHeldExecution } from "../helpers/hand-held-instances.ts";
import { requestFor } from "../helpers/requests.ts";

export interface JobStandLimits {
  readonly resultMilliseconds: number;
  readonly failedMilliseconds: number;
  readonly keyMilliseconds: number;
  readonly attempts: number;
  readonly maxUnfinished: number;
  readonly maxResultBytes: number;
  readonly tracer?: Tracer;
}

/** Jobs whose executions last until the test says so. */
export interface JobStand {
  readonly jobs: Jobs;
  readonly model: ServedModel;
  readonly executions: () => readonly HandHeldExecution[];
  readonly close: () => Promise<void>;
}

export const standLimits: JobStandLimits = {
  resultMilliseconds: 60_000,
  failedMilliseconds: 60_000,
  keyMilliseconds: 60_000,
  attempts: 3,
  maxUnfinished: 100,
  maxResultBytes: 4 * 1024 * 1024,
};

const somebody: Principal = { name: "somebody", tenant: "default" };

/** What holds for jobs wherever they are kept. */
export function jobCases(start: (limits: JobStandLimits) => Promise<JobStand>): void {
  let stand: JobStand;
  afterEach(() => stand.close());

  async function started(limits: Partial<JobStandLimits> = {}): Promise<Jobs> {
    stand = await start({ ...standLimits, ...limits });
    return stand.jobs;
  }

  function newJob(more: Partial<NewJob> = {}): NewJob {
    const request = requestFor(stand.model, [4]);
    return { principal: anonymous, request, binaryOutputs: "all", keyed: false, ...more };
  }

  function submit(more: Partial<NewJob> = {}): Promise<Job> {
    return stand.jobs.submit(stand.jobs.newId(stand.model.name), newJob(more));
  }

  function execution(index: number): Promise<HandHeldExecution> {
    return eventually(() => {
      const found = stand.executions()[index];
      if (!found) throw new Error(`execution ${index} has not begun`);
      return found;
    });
  }

  function untilState({ id }: Job, state: string): Promise<Job> {
    return eventually(async () => {
      const job = await stand.jobs.find(anonymous, id);
      expect(job).toMatchObject({ state });
      if (!job) throw new Error("not found");
      return job;
    });
  }

  it("runs a job and keeps its answer and how that was wanted", async () => {
    const jobs = await started();
    const job = await submit({ binaryOutputs: new Set(["OUT"]) });
    expect(job).toMatchObject({ state: "queued", modelName: "echo", attempts: 0 });
    expect(job.id).toMatch(/^j_[\w-]{24,}$/u);
    const running = await execution(0);
    const { changes } = await untilState(job, "running");
    expect(changes).toBeGreaterThan(job.changes);
    expect(await jobs.answer(anonymous, job.id)).toBeUndefined();
    running.finish();

    const done = await untilState(job, "done");
    expect(done.attempts).toBe(1);
    expect(done.endedAt).toBeGreaterThanOrEqual(done.startedAt ?? Infinity);
    const answer = await jobs.answer(anonymous, job.id);
    expect(answer?.binaryOutputs).toEqual(new Set(["OUT"]));
    expect(answer?.response.outputs).toEqual([
      { name: "OUT", datatype: "FP32", shape: [4], bytes: expect.anything() },
    ]);
  });

  it("hides a job from everybody else", async () => {
    const jobs = await started();
    const { id } = await submit();
    for (const other of [somebody, { ...anonymous, tenant: "another" }]) {
      expect(await jobs.find(other, id)).toBeUndefined();
      expect(await jobs.cancel(other, id)).toBeUndefined();
      expect(await jobs.replay(new Call(other, 0), id)).toBeUndefined();
      expect(await jobs.answer(other, id)).toBeUndefined();
      expect(await jobs.list(other, 10)).toEqual({ jobs: [] });
    }
    (await execution(0)).finish();
    expect(await jobs.find(anonymous, "j_nobody-has-ever-had-this-id-")).toBeUndefined();
  });

  it("drops what comes of a job that is cancelled while it runs", async () => {
    const jobs = await started();
    const job = await submit();
    const running = await execution(0);
    expect(await jobs.cancel(anonymous, job.id)).toMatchObject({ state: "cancelled" });
    expect(await jobs.cancel(anonymous, job.id)).toMatchObject({ state: "cancelled" });
    running.finish();
    const next = await submit();
    (await execution(1)).finish();
    await untilState(next, "done");
    expect(await jobs.find(anonymous, job.id)).toMatchObject({ state: "cancelled" });
    expect(await jobs.answer(anonymous, job.id)).toBeUndefined();
  });

  it("tries a job again whose model was not available, and tells why it waits", async () => {
    await started();
    const job = await submit();
    (await execution(0)).fail(new InferenceError(StatusCode.Unavailable, "no room"));
    const waiting = await untilState(job, "queued");
    expect(waiting.error).toMatchObject({ code: "UNAVAILABLE" });
    (await execution(1)).finish();
    const done = await untilState(job, "done");
    expect(done.error).toBeUndefined();
    expect(done.attempts).toBe(2);
  });

  it("gives up after as many attempts as it may make", async () => {
    await started({ attempts: 1 });
    const job = await submit();
    (await execution(0)).fail(new InferenceError(StatusCode.Unavailable, "no room"));
    expect(await untilState(job, "failed")).toMatchObject({ error: { code: "UNAVAILABLE" } });
  });

  it("keeps a job that has failed, which nobody tries again unless it is replayed", async () => {
    const jobs = await started();
    const job = await submit();
    (await execution(0)).fail(new InferenceError(StatusCode.InvalidArg, "no number"));
    const failed = await untilState(job, "failed");
    expect(failed.error).toMatchObject({ code: "INVALID_ARG" });
    expect(failed.error?.message).toContain("no number");

    const replayed = await jobs.replay(new Call(anonymous, 0), job.id);
    expect(replayed?.error).toBeUndefined();
    (await execution(1)).finish();
    await untilState(job, "done");
    expect(await jobs.replay(new Call(anonymous, 0), job.id)).toMatchObject({ state: "done" });
    expect(stand.executions()).toHaveLength(2);
  });

  it("charges who replays a job, and leaves it as it is when that is refused", async () => {
    const jobs = await started();
    const job = await submit();
    (await execution(0)).fail(new InferenceError(StatusCode.InvalidArg, "no number"));
    const failed = await untilState(job, "failed");
    const charged: number[] = [];
    const call = new Call(anonymous, 0);
    call.permit = {
      hold: () => {},
      retryAfterSeconds: () => 1,
      charge: async (items) => {
        charged.push(items);
        if (charged.length === 1) throw new InferenceError(StatusCode.ResourceExhausted, "spent");
      },
    };
    await expect(jobs.replay(call, job.id)).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(await jobs.find(anonymous, job.id)).toEqual(failed);
    await jobs.replay(call, job.id);
    (await execution(1)).finish();
    await untilState(job, "done");
    expect(charged).toEqual([1, 1]);
  });

  it("binds a key to what first claims it, for each principal", async () => {
    const jobs = await started();
    const first = { id: "j_1", digest: "a" };
    expect(await jobs.claim(anonymous, "key", first)).toEqual(first);
    expect(await jobs.claim(anonymous, "key", { id: "j_2", digest: "b" })).toMatchObject(first);
    const other = { id: "j_3", digest: "b" };
    expect(await jobs.claim(somebody, "key", other)).toEqual(other);
    expect(await jobs.claim(anonymous, "another key", other)).toEqual(other);
  });

  it("runs a job once that is submitted twice", async () => {
    const jobs = await started();
    const id = jobs.newId("echo");
    const [job] = await Promise.all([jobs.submit(id, newJob()), jobs.submit(id, newJob())]);
    (await execution(0)).finish();
    await untilState(job, "done");
    await jobs.submit(id, newJob());
    const last = await submit();
    (await execution(1)).finish();
    await untilState(last, "done");
    expect(stand.executions()).toHaveLength(2);
  });

  it("refuses more unfinished jobs than it may have, and takes them again later", async () => {
    await started({ maxUnfinished: 2 });
    const job = await submit();
    await submit();
    await expect(submit()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("--job-max-unfinished"),
    });
    (await execution(0)).finish();
    await untilState(job, "done");
    await submit();
  });

  it("fails a job whose result is larger than it may be", async () => {
    await started({ maxResultBytes: 8 });
    const job = await submit();
    (await execution(0)).finish();
    const { error } = await untilState(job, "failed");
    expect(error).toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining("--job-max-result-bytes"),
    });
  });

  it("forgets a job when its time is over, but not while a key leads to it", async () => {
    const jobs = await started({ resultMilliseconds: 100 });
    const short = await submit();
    const long = await submit({ keyed: true });
    (await execution(0)).finish();
    (await execution(1)).finish();
    await untilState(long, "done");
    await eventually(async () => expect(await jobs.find(anonymous, short.id)).toBeUndefined());
    expect(await jobs.find(anonymous, long.id)).toMatchObject({ state: "done" });
    expect((await jobs.list(anonymous, 10)).jobs.map(({ id }) => id)).toEqual([long.id]);
  });

  it("lists jobs page by page, the newest first", async () => {
    const jobs = await started();
    const made: string[] = [];
    for (let i = 0; i < 5; i++) {
      const { id, createdAt } = await submit();
      made.push(id);
      // Jobs of one millisecond are in no order.
      await eventually(() => expect(Date.now()).toBeGreaterThan(createdAt));
    }
    const listed: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await jobs.list(anonymous, 2, cursor);
      expect(page.jobs.length).toBeLessThanOrEqual(2);
      listed.push(...page.jobs.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(listed).toEqual(made.toReversed());
    await expect(jobs.list(anonymous, 2, "nonsense")).rejects.toMatchObject({
      code: "INVALID_ARG",
    });
  });

  it("wakes those who wait for a change", async () => {
    const jobs = await started();
    const job = await submit();
    const running = await execution(0);
    await untilState(job, "running");
    const changed = jobs.changed(job.id, AbortSignal.timeout(10_000));
    running.finish();
    await expect(changed).resolves.toBeUndefined();
    await expect(jobs.changed(job.id, AbortSignal.abort())).resolves.toBeUndefined();
  });
}
