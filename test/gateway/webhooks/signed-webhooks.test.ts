import { Webhook } from "standardwebhooks";
import { afterEach, describe, expect, it } from "vitest";
import { type Delivery } from "../../../protocol/webhook.ts";
import { SilentLog } from "../../helpers/silent-log.ts";
import {
  type ReceiverOptions,
  startReceiver,
  type WebhookReceiver,
} from "../../helpers/webhook-receiver.ts";
import {
  localWebhooks,
  newWebhookSecret,
  signatureOf,
  webhookSecret,
} from "../../helpers/webhooks.ts";

let receiver: WebhookReceiver | undefined;
afterEach(async () => {
  await receiver?.close();
  receiver = undefined;
});

async function start(options: ReceiverOptions = {}): Promise<WebhookReceiver> {
  receiver = await startReceiver(options);
  return receiver;
}

function deliveryTo(url: string, tenant = "default"): Delivery {
  const body = '{"type":"job.completed","é":1}';
  return { id: "j_1_4", type: "job.completed", url, tenant, body, since: Date.now() };
}

/** What every name stands for. */
async function privately(): Promise<{ address: string; family: number }[]> {
  return [{ address: "10.11.12.13", family: 4 }];
}

/** Of a name server that does not answer. */
function never(): Promise<never> {
  return new Promise(() => {});
}

describe("SignedWebhooks", () => {
  it("signs so that the library and the specification agree", async () => {
    const { origin, port, received } = await start();
    const delivery = deliveryTo(origin);
    const attempt = await localWebhooks([port]).attempt(delivery, 1);
    expect(attempt).toMatchObject({ id: "j_1_4", attempt: 1, status: 204, outcome: "delivered" });
    const [got] = received;
    if (!got) throw new Error("nothing received");
    const { "webhook-id": id, "webhook-signature": signature } = got.headers;
    expect([id, signature]).toEqual(["j_1_4", signatureOf(webhookSecret, got)]);
    expect(got.headers["content-type"]).toBe("application/json");
    const verified = new Webhook(webhookSecret).verify(got.body, got.headers);
    expect(verified).toEqual(JSON.parse(delivery.body));
    expect(() => new Webhook(newWebhookSecret()).verify(got.body, got.headers)).toThrow(
      "signature",
    );
    expect(() => new Webhook(webhookSecret).verify(`${got.body} `, got.headers)).toThrow(
      "signature",
    );
  });

  it("signs with each secret, so that either of two receivers verifies", async () => {
    const { origin, port, received } = await start();
    const secrets = [newWebhookSecret(), newWebhookSecret()];
    await localWebhooks([port], { secrets: () => secrets }).attempt(deliveryTo(origin), 1);
    const [got] = received;
    if (!got) throw new Error("nothing received");
    const expected = secrets.map((secret) => signatureOf(secret, got)).join(" ");
    expect(got.headers["webhook-signature"]).toBe(expected);
    for (const secret of secrets) new Webhook(secret).verify(got.body, got.headers);
  });

  it("refuses jobs of a tenant without a secret, and targets that the policy refuses", () => {
    const webhooks = localWebhooks([80]);
    webhooks.check("http://hooks.example/", "default");
    expect(() => webhooks.check("http://hooks.example/", "blue")).toThrow("tenant 'blue'");
    expect(() => webhooks.check("http://10.0.0.1/", "default")).toThrow("may not go");
  });

  it("sends nothing that no secret signs", async () => {
    const { origin, port, received } = await start();
    const attempt = await localWebhooks([port]).attempt(deliveryTo(origin, "blue"), 1);
    expect(attempt).toMatchObject({ outcome: "retry", why: "the tenant has no webhook secret" });
    expect(received).toEqual([]);
  });

  it.each([
    [200, "delivered", undefined],
    [299, "delivered", undefined],
    [302, "retry", "answered 302"],
    [400, "retry", "answered 400"],
    [410, "gone", "answered 410"],
    [500, "retry", "answered 500"],
  ])("takes %i for %s", async (status, outcome, why) => {
    const { origin, port } = await start({
      answer: (outgoing) => outgoing.writeHead(status).end(),
    });
    const attempt = await localWebhooks([port]).attempt(deliveryTo(origin), 1);
    expect(attempt).toMatchObject({ status, outcome });
    expect(attempt?.why).toBe(why);
    expect(attempt?.nextAt !== undefined).toBe(outcome === "retry");
  });

  it("comes back no sooner than a receiver asks that has too much to do", async () => {
    const { origin, port } = await start({
      answer: (outgoing) => outgoing.writeHead(429, { "Retry-After": "100" }).end(),
    });
    const attempt = await localWebhooks([port]).attempt(deliveryTo(origin), 1);
    expect(attempt?.nextAt).toBeGreaterThanOrEqual((attempt?.at ?? 0) + 100_000);
  });

  it("gives up after as many attempts as it may make, and says so", async () => {
    const { origin, port } = await start({ answer: (outgoing) => outgoing.writeHead(500).end() });
    const log = new SilentLog();
    const attempt = await localWebhooks([port], { log }).attempt(deliveryTo(origin), 4);
    expect(attempt).toMatchObject({ outcome: "exhausted", why: "answered 500" });
    expect(attempt?.nextAt).toBeUndefined();
    expect(log.warnings).toEqual(["a webhook is given up"]);
  });

  it("tells why it failed, and nothing of what it found", async () => {
    const hanging = await start({ answer: () => {} });
    const { port } = hanging;
    const late = localWebhooks([port], { timeoutMilliseconds: 50 });
    expect(await late.attempt(deliveryTo(hanging.origin), 1)).toMatchObject({
      outcome: "retry",
      why: "no answer in 50 ms",
    });
    const inside = localWebhooks([port], { resolve: privately });
    const named = await inside.attempt(deliveryTo(`http://inside.example:${port}/`), 1);
    expect(named?.why).toBe("webhooks may not go to the address of that name");
    await hanging.close();
    receiver = undefined;
    const refused = await localWebhooks([port]).attempt(deliveryTo(hanging.origin), 1);
    expect(refused?.why).toBe("connection failed: ECONNREFUSED");
  });

  it("has eight at a time on their way to one target, and goes on to others", async () => {
    const { origin, port, received } = await start({ answer: () => {} });
    const webhooks = localWebhooks([port], { timeoutMilliseconds: 1000 });
    const first = Array.from({ length: 8 }, () => webhooks.attempt(deliveryTo(origin), 1));
    expect(await webhooks.attempt(deliveryTo(`${origin}/other/path`), 1)).toBeUndefined();
    const other = await webhooks.attempt(deliveryTo(`http://localhost:${port + 1}/`), 1);
    expect(other?.outcome).toBe("retry");
    await Promise.all(first);
    expect(received).toHaveLength(8);
    expect(await webhooks.attempt(deliveryTo(origin), 1)).toMatchObject({ outcome: "retry" });
  });

  it("has sixteen of one tenant on their way at a time, and goes on to those of others", async () => {
    const webhooks = localWebhooks([80], { timeoutMilliseconds: 1000, resolve: never });
    const urls = Array.from({ length: 16 }, (_, at) => `http://name-${at}.example/`);
    const first = urls.map((url) => webhooks.attempt(deliveryTo(url), 1));
    const next = "http://next.example/";
    expect(await webhooks.attempt(deliveryTo(next), 1)).toBeUndefined();
    const other = await webhooks.attempt(deliveryTo(next, "other"), 1);
    expect(other?.outcome).toBe("retry");
    await Promise.all(first);
    expect(await webhooks.attempt(deliveryTo(next), 1)).toMatchObject({ outcome: "retry" });
  });
});
