import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { checkRedis } from "../../redis/checks.ts";
import { connect } from "../../redis/connection.ts";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { busyBody, busyModel } from "../helpers/busy-model.ts";
import { type Deployment, deploy } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import type { Answer, Headers } from "../helpers/http-client.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

const asynchronous = { Prefer: "respond-async" };
const answered =
  '{"model_name":"seven","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[7.0]}]}';

let models: ModelDirectory;
/** Each test leaves it with a gateway and a pool worker. */
let deployment: Deployment;
beforeAll(async () => {
  models = new ModelDirectory();
  models.model("seven", { 1: addingModel(7) });
  models.model("busy", { 1: busyModel() });
  deployment = await deploy({ models: models.path, redis: { appendOnly: true } });
});
let before = 0;
beforeEach(async () => {
  before = await allExecutions();
});
afterAll(async () => {
  await deployment.stop();
  models.remove();
});

async function stopPoolWorkers(): Promise<void> {
  await Promise.all(deployment.poolWorkers.map((one) => one.stop()));
}

async function replaceGateway(): Promise<void> {
  const [gateway] = deployment.gateways;
  await gateway?.kill();
  await gateway?.start();
}

async function submit(headers: Headers = {}): Promise<string> {
  const answer = await deployment.http.infer("seven", addingBody, { ...asynchronous, ...headers });
  expect(answer.status).toBe(202);
  return String(JSON.parse(answer.text).id);
}

function jobAt(id: string, rest = ""): Promise<Answer> {
  return deployment.http.get(`/v2/jobs/${id}${rest}`);
}

async function stateOf(id: string): Promise<string> {
  return String(JSON.parse((await jobAt(id)).text).state);
}

/** Of all pool workers until now. */
async function allExecutions(): Promise<number> {
  const { text } = await deployment.http.get("/v2/models/seven/stats");
  return Number(JSON.parse(text).model_stats[0].execution_count);
}

/** Since the test has begun. */
async function executions(): Promise<number> {
  return (await allExecutions()) - before;
}

function untilDone(ids: readonly string[]): Promise<void> {
  return eventually(async () => {
    const states = await Promise.all(ids.map(stateOf));
    expect(new Set(states)).toEqual(new Set(["done"]));
  });
}

describe("durable requests", () => {
  it("outlive their gateway and wait for pool workers to come", async () => {
    await stopPoolWorkers();
    const ids = await Promise.all(Array.from({ length: 20 }, () => submit()));
    await replaceGateway();
    expect(await stateOf(ids[0] ?? "")).toBe("queued");

    await deployment.addPoolWorker();
    await untilDone(ids);
    const results = await Promise.all(ids.map((id) => jobAt(id, "/result")));
    expect(new Set(results.map(({ text }) => text))).toEqual(new Set([answered]));
    expect(await executions()).toBe(20);
  });

  it("are all there after Redis was killed", async () => {
    const { redis } = deployment;
    await stopPoolWorkers();
    const ids = await Promise.all(Array.from({ length: 20 }, () => submit()));
    await redis.kill();
    await redis.restart();
    await deployment.addPoolWorker();
    await untilDone(ids);
    expect(await executions()).toBe(20);
  });

  it("say what Redis promises: all where it can be asked, and else all but the last second", async () => {
    const everySecond = { appendOnly: true, extra: ["--appendfsync", "everysec"] };
    const other = await deploy({ models: models.path, redis: everySecond });
    onTestFinished(() => other.stop());
    const { text } = await other.http.infer("seven", addingBody, asynchronous);
    const { durability, can_be_lost: lost } = JSON.parse(text);
    const commands = await connect(other.redis.url, "commands");
    const { waitAof } = await checkRedis(commands);
    commands.disconnect();
    expect([durability, lost]).toEqual(
      waitAof ? ["always", undefined] : ["everysec", "jobs of the last second before Redis dies"],
    );
  });

  it("run nothing when they are cancelled while they wait", async () => {
    await stopPoolWorkers();
    const cancelled = await submit();
    const other = await submit();
    const answer = await deployment.http.ask("DELETE", `/v2/jobs/${cancelled}`);
    expect(JSON.parse(answer.text)).toMatchObject({ id: cancelled, state: "cancelled" });
    await deployment.addPoolWorker();
    await untilDone([other]);
    expect(await stateOf(cancelled)).toBe("cancelled");
    expect((await jobAt(cancelled, "/result")).status).toBe(400);
    expect(await executions()).toBe(1);
  });

  it("give the same bytes for the same key after a gateway was killed", async () => {
    const headers = { "Idempotency-Key": '"one"' };
    const first = await deployment.http.infer("seven", addingBody, headers);
    expect(first.text).toBe(answered);
    expect(first.headers["idempotency-replayed"]).toBeUndefined();
    await replaceGateway();
    const second = await deployment.http.infer("seven", addingBody, headers);
    expect(second.text).toBe(answered);
    expect(second.headers["idempotency-replayed"]).toBe("true");
    expect(await executions()).toBe(1);
  });

  it("answer a sender that joins one that waits", async () => {
    await stopPoolWorkers();
    const headers = { "Idempotency-Key": "joined" };
    const id = await submit(headers);
    const joined = deployment.http.infer("seven", addingBody, headers);
    await sleep(200);
    expect(await stateOf(id)).toBe("queued");
    await deployment.addPoolWorker();
    expect((await joined).text).toBe(answered);
    expect(await executions()).toBe(1);
  });

  it("are taken over from a pool worker that dies", async () => {
    const answer = await deployment.http.infer("busy", busyBody(1_000_000), asynchronous);
    const { id } = JSON.parse(answer.text);
    await eventually(async () => expect(await stateOf(id)).toBe("running"));
    await Promise.all(deployment.poolWorkers.map((one) => one.kill()));
    await deployment.addPoolWorker();
    await untilDone([id]);
    expect(JSON.parse((await jobAt(id)).text).attempts).toBe(2);
    expect((await jobAt(id, "/result")).text).toContain('"data":[1000000]');
  });

  it("are told as events, from a waiting job to its end", async () => {
    await stopPoolWorkers();
    const id = await submit();
    const events = jobAt(id, "/events");
    await deployment.addPoolWorker();
    const { text, headers } = await events;
    expect(headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    const names = [...text.matchAll(/^event: (?<name>.*)$/gmu)].map(([, name]) => name);
    expect(names.at(0)).toBe("queued");
    expect(names.at(-1)).toBe("done");
  });
});
