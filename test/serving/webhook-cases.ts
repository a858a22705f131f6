import type { ServerResponse } from "node:http";
import { afterEach, expect, it } from "vitest";
import type { SignedWebhooksOptions } from "../../gateway/webhooks/signed-webhooks.ts";
import { anonymous, Call } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Job } from "../../protocol/job.ts";
import type { WebhookSender } from "../../protocol/webhook.ts";
import { eventually } from "../helpers/eventually.ts";
import type { HandHeldExecution } from "../helpers/hand-held-instances.ts";
import { requestFor } from "../helpers/requests.ts";
import {
  type ReceiverOptions,
  startReceiver,
  type WebhookReceiver,
} from "../helpers/webhook-receiver.ts";
import { localWebhooks, signatureOf, webhookSecret } from "../helpers/webhooks.ts";
import type { JobStand } from "./job-cases.ts";

/** What holds for webhooks of jobs wherever both are kept. */
export function webhookCases(start: (sender: WebhookSender) => Promise<JobStand>): void {
  let stand: JobStand;
  let receiver: WebhookReceiver;
  afterEach(async () => {
    await stand.close();
    await receiver.close();
  });

  async function started(
    options: ReceiverOptions = {},
    more: Partial<SignedWebhooksOptions> = {},
  ): Promise<void> {
    receiver = await startReceiver(options);
    stand = await start(localWebhooks([receiver.port], more));
  }

  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  function submit(webhook = `${receiver.origin}/hook`, tenant = "default"): Promise<Job> {
    return stand.jobs.submit(stand.jobs.newId("echo"), {
      principal: { ...anonymous, tenant },
      request: requestFor(stand.model, [4]),
      binaryOutputs: "all",
      keyed: false,
      webhook,
      traceparent,
    });
  }

  function execution(index: number): Promise<HandHeldExecution> {
    return eventually(() => {
      const found = stand.executions()[index];
      if (!found) throw new Error(`execution ${index} has not begun`);
      return found;
    });
  }

  function told(count = 1): Promise<void> {
    return eventually(() => expect(receiver.received).toHaveLength(count));
  }

  it("tells the receiver once, signed, when the job is done", async () => {
    await started();
    const { id } = await submit();
    const running = await execution(0);
    expect(receiver.received).toEqual([]);
    running.finish();
    await told();
    const [got] = receiver.received;
    if (!got) throw new Error("nothing received");
    expect(got.path).toBe("/hook");
    expect(got.headers["traceparent"]).toBe(traceparent);
    expect(got.headers["webhook-signature"]).toBe(signatureOf(webhookSecret, got));
    const job = await stand.jobs.find(anonymous, id);
    expect(got.headers["webhook-id"]).toBe(`${id}_${job?.changes}`);
    expect(JSON.parse(got.body)).toEqual({
      type: "job.completed",
      timestamp: new Date(job?.endedAt ?? 0).toISOString(),
      data: {
        job_id: id,
        state: "done",
        model_name: "echo",
        created_at: new Date(job?.createdAt ?? 0).toISOString(),
        ended_at: new Date(job?.endedAt ?? 0).toISOString(),
        attempts: 1,
        result: `/v2/jobs/${id}/result`,
      },
    });
    await eventually(async () =>
      expect(await stand.jobs.deliveries(anonymous, id)).toMatchObject([
        { id: got.headers["webhook-id"], attempt: 1, status: 204, outcome: "delivered" },
      ]),
    );
    expect(await stand.jobs.deliveries({ ...anonymous, name: "other" }, id)).toEqual([]);
  });

  it("tells of a job that is cancelled", async () => {
    await started();
    const { id } = await submit();
    const running = await execution(0);
    await stand.jobs.cancel(anonymous, id);
    await told();
    running.finish();
    const { type, data } = JSON.parse(receiver.received[0]?.body ?? "");
    expect([type, data.state, data.result]).toEqual(["job.cancelled", "cancelled", undefined]);
  });

  it("tells of a job that has failed, and again when it is replayed", async () => {
    await started();
    const { id } = await submit();
    (await execution(0)).fail(new InferenceError(StatusCode.InvalidArg, "no number"));
    await told(1);
    await stand.jobs.replay(new Call(anonymous, 0), id);
    (await execution(1)).finish();
    await told(2);
    const [failed, done] = receiver.received.map(({ body }) => JSON.parse(body));
    expect(failed).toMatchObject({ type: "job.failed", data: { error: { code: "INVALID_ARG" } } });
    expect(done.type).toBe("job.completed");
    const ids = receiver.received.map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(2);
  });

  it("tries again until the receiver has it, with the same id", async () => {
    await started({ answer: (outgoing, count) => outgoing.writeHead(count < 3 ? 500 : 200).end() });
    const { id } = await submit();
    (await execution(0)).finish();
    await told(3);
    const ids = receiver.received.map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(1);
    await eventually(async () =>
      expect(await stand.jobs.deliveries(anonymous, id)).toMatchObject([
        { attempt: 1, status: 500, outcome: "retry", why: "answered 500" },
        { attempt: 2, status: 500, outcome: "retry" },
        { attempt: 3, status: 200, outcome: "delivered" },
      ]),
    );
  });

  it("ends when the receiver says that it is gone", async () => {
    await started({ answer: (outgoing) => outgoing.writeHead(410).end() });
    const { id } = await submit();
    (await execution(0)).finish();
    await eventually(async () =>
      expect(await stand.jobs.deliveries(anonymous, id)).toMatchObject([{ outcome: "gone" }]),
    );
    const next = await submit();
    (await execution(1)).finish();
    await told(2);
    expect(receiver.received[1]?.headers["webhook-id"]).toContain(next.id);
  });

  it("gives up after its last attempt", async () => {
    await started({ answer: (outgoing) => outgoing.destroy() });
    const { id } = await submit();
    (await execution(0)).finish();
    await eventually(async () => {
      const outcomes = (await stand.jobs.deliveries(anonymous, id)).map(({ outcome }) => outcome);
      expect(outcomes).toEqual(["retry", "retry", "retry", "exhausted"]);
    });
  });

  it("refuses one more job with a webhook while too many of its tenant are not delivered", async () => {
    const retries = { attempts: 4, firstMilliseconds: 60_000 };
    const answer = { answer: (outgoing: ServerResponse) => outgoing.writeHead(500).end() };
    await started(answer, { maxUndelivered: 1, retries, secrets: () => [webhookSecret] });
    await submit();
    (await execution(0)).finish();
    await told();
    await expect(submit()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("--webhook-max-undelivered"),
    });
    const ofAnother = await submit(undefined, "blue");
    (await execution(1)).finish();
    await told(2);
    expect(receiver.received[1]?.headers["webhook-id"]).toContain(ofAnother.id);
  });

  it("takes a job with a webhook again when those before are delivered or given up", async () => {
    await started(
      { answer: (outgoing, count) => outgoing.writeHead(count === 1 ? 410 : 200).end() },
      { maxUndelivered: 1 },
    );
    for (let index = 0; index < 3; index++) {
      await eventually(() => submit());
      (await execution(index)).finish();
      await told(index + 1);
    }
    expect(stand.executions()).toHaveLength(3);
  });

  it("refuses a job whose receiver it could not tell, and runs nothing", async () => {
    await started();
    await expect(submit("http://10.0.0.1/")).rejects.toMatchObject({ code: "INVALID_ARG" });
    await expect(submit(undefined, "blue")).rejects.toMatchObject({ code: "INVALID_ARG" });
    expect(stand.executions()).toEqual([]);
  });
}
