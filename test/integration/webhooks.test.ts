import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../redis/connection.ts";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { type Deployment, deploy } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { type Headers, HttpClient } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import { startReceiver, type WebhookReceiver } from "../helpers/webhook-receiver.ts";
import { newWebhookSecret, webhookSecret } from "../helpers/webhooks.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-webhooks-"));
const secretFile = path.join(folder, "secrets.json");
const longTime = 60_000;

let models: ModelDirectory;
let receiver: WebhookReceiver;
/** How the receiver answers; 204 without it. */
let answer: ((outgoing: ServerResponse, received: number) => void) | undefined;
beforeAll(() => {
  models = new ModelDirectory();
  models.model("seven", { 1: addingModel(7) });
});
beforeEach(async () => {
  answer = undefined;
  writeSecrets([webhookSecret]);
  receiver = await startReceiver({
    answer: (outgoing, received) =>
      answer ? answer(outgoing, received) : outgoing.writeHead(204).end(),
  });
});
afterEach(() => receiver.close());
afterAll(() => {
  models.remove();
  rmSync(folder, { recursive: true });
});

function writeSecrets(secrets: readonly string[]): void {
  writeFileSync(`${secretFile}.new`, JSON.stringify({ default: secrets }));
  renameSync(`${secretFile}.new`, secretFile);
}

function flags(): string[] {
  return [
    `--webhook-secret-file=${secretFile}`,
    "--webhook-allow-http",
    "--webhook-allow-target=127.0.0.1",
    `--webhook-port=${receiver.port}`,
    "--webhook-retry-secs=0.1",
  ];
}

async function submit(http: HttpClient, headers: Headers = {}): Promise<string> {
  const accepted = await http.infer("seven", addingBody, {
    Prefer: "respond-async",
    "Webhook-URL": `${receiver.origin}/hook`,
    ...headers,
  });
  expect(accepted.status).toBe(202);
  return String(JSON.parse(accepted.text).id);
}

async function deliveries(http: HttpClient, id: string): Promise<unknown> {
  return JSON.parse((await http.get(`/v2/jobs/${id}/deliveries`)).text).deliveries;
}

function idsReceived(): readonly (string | undefined)[] {
  return receiver.received.map(({ headers }) => headers["webhook-id"]);
}

describe("webhooks of serve", () => {
  let server: TidepoolProcess;
  let http: HttpClient;
  beforeEach(async () => {
    server = await startTidepool([`--model-repository=${models.path}`, ...flags()]);
    http = new HttpClient(server.http);
  });
  afterEach(async () => {
    http.close();
    await server.stop();
  });

  it("are signed, tried again, and lead to the result", async () => {
    answer = (outgoing, received) => outgoing.writeHead(received === 1 ? 503 : 200).end("thanks");
    const id = await submit(http);
    await eventually(() => expect(receiver.received).toHaveLength(2));
    const [, got] = receiver.received;
    if (!got) throw new Error("nothing received");
    const event = JSON.parse(
      JSON.stringify(new Webhook(webhookSecret).verify(got.body, got.headers)),
    );
    expect(event).toMatchObject({ type: "job.completed", data: { job_id: id, state: "done" } });
    const result = await http.get(event.data.result);
    expect(result.text).toContain('"data":[7.0]');
    await eventually(async () =>
      expect(await deliveries(http, id)).toEqual([
        {
          webhook_id: `${id}_3`,
          type: "job.completed",
          attempt: 1,
          at: expect.any(String),
          milliseconds: expect.any(Number),
          status: 503,
          outcome: "retry",
          why: "answered 503",
          next_at: expect.any(String),
        },
        expect.objectContaining({ attempt: 2, status: 200, outcome: "delivered" }),
      ]),
    );
    const metrics = await (await fetch(`http://${server.metrics}/metrics`)).text();
    expect(metrics).toContain('tidepool_webhook_attempts_total{outcome="delivered"} 1');
    expect(metrics).toContain('tidepool_webhook_attempts_total{outcome="retry"} 1');
    expect(metrics).toContain("tidepool_webhook_undelivered 0");
  });

  it("are signed with the secrets that the file has now", async () => {
    const next = newWebhookSecret();
    writeSecrets([next, webhookSecret]);
    await eventually(async () => {
      const seen = receiver.received.length;
      await submit(http);
      await eventually(() => expect(receiver.received.length).toBeGreaterThan(seen));
      const signature = receiver.received.at(-1)?.headers["webhook-signature"] ?? "";
      expect(signature.split(" ")).toHaveLength(2);
    });
    const got = receiver.received.at(-1);
    if (!got) throw new Error("nothing received");
    for (const secret of [next, webhookSecret]) new Webhook(secret).verify(got.body, got.headers);
  });

  it("go nowhere else, and are the same for the same idempotency key", async () => {
    const other = { Prefer: "respond-async", "Webhook-URL": "http://169.254.169.254/latest" };
    const refused = await http.infer("seven", addingBody, other);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("Webhook-URL: given port 80");
    const key = { "Idempotency-Key": "one" };
    const id = await submit(http, key);
    expect(await submit(http, key)).toBe(id);
    const elsewhere = { ...other, ...key, "Webhook-URL": `${receiver.origin}/other` };
    expect((await http.infer("seven", addingBody, elsewhere)).status).toBe(422);
    await eventually(() => expect(receiver.received).toHaveLength(1));
  });

  it("are lost with the process, which says so", async () => {
    answer = (outgoing) => outgoing.writeHead(500, { "Retry-After": "1000" }).end();
    await submit(http);
    await eventually(() => expect(receiver.received).toHaveLength(1));
    await server.stop();
    expect(server.lines.map(({ msg }) => msg)).toContain("webhooks are lost: this process ends");
  });
});

describe("webhooks of gateways", () => {
  let deployment: Deployment;
  afterEach(() => deployment.stop());

  async function deployed(): Promise<Deployment> {
    deployment = await deploy({ models: models.path, gateways: 2, flags: flags() });
    return deployment;
  }

  it(
    "are delivered when jobs end while no gateway is there",
    async () => {
      const { gateways, poolWorkers, redis, http } = await deployed();
      await Promise.all(poolWorkers.map((one) => one.stop()));
      await gateways[1]?.stop();
      const ids = [await submit(http), await submit(http), await submit(http)];
      await gateways[0]?.kill();
      await deployment.addPoolWorker();
      const commands = await connect(redis.url, "commands");
      await eventually(async () =>
        expect(await commands.zcard("{tidepool:default}:undelivered-webhooks")).toBe(3),
      );
      commands.disconnect();
      expect(receiver.received).toEqual([]);

      await gateways[1]?.start();
      await eventually(() => expect(receiver.received).toHaveLength(3));
      expect(new Set(idsReceived().map((id) => id?.slice(0, 32)))).toEqual(new Set(ids));
      const { metrics } = gateways[1] ?? {};
      await eventually(async () => {
        const text = await (await fetch(`http://${metrics}/metrics`)).text();
        expect(text).toContain('tidepool_webhook_attempts_total{outcome="delivered"} 3');
      });
    },
    longTime,
  );

  it(
    "are delivered by another gateway when one dies amid an attempt",
    async () => {
      const { gateways, http } = await deployed();
      await gateways[1]?.stop();
      answer = (outgoing, received) => {
        if (received > 1) outgoing.writeHead(204).end();
      };
      const id = await submit(http);
      await eventually(() => expect(receiver.received).toHaveLength(1));
      await gateways[1]?.start();
      await gateways[0]?.kill();
      // The lock of the dead one has to run out.
      await eventually(() => expect(receiver.received).toHaveLength(2), 30_000);
      const [first, second] = idsReceived();
      expect(second).toBe(first);
      const other = gateways[1]?.http;
      if (!other) throw new Error("no second gateway");
      await eventually(async () =>
        expect(await deliveries(other, id)).toMatchObject([{ attempt: 1, outcome: "delivered" }]),
      );
      expect(receiver.received).toHaveLength(2);
    },
    longTime,
  );
});
