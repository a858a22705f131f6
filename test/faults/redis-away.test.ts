import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { type Deployment, deploy } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";

const job = "/v2/jobs";
const infer = "/v2/models/seven/infer";
const body = JSON.stringify(addingBody);

describe("a gateway whose Redis is away", { timeout: 60_000 }, () => {
  const models = new ModelDirectory();
  let deployment: Deployment;
  let jobId: string;
  beforeAll(async () => {
    models.model("seven", { 1: addingModel(7) });
    deployment = await deploy({ models: models.path, redis: { appendOnly: true } });
    const { text } = await deployment.http.post(infer, body, { Prefer: "respond-async" });
    jobId = JSON.parse(text).id;
    await deployment.redis.kill();
  }, 60_000);
  afterAll(async () => {
    await deployment.stop();
    models.remove();
  });

  it.each<[method: string, path: string, headers?: Readonly<Record<string, string>>]>([
    ["POST", infer],
    ["POST", infer, { Accept: "text/event-stream" }],
    ["POST", infer, { Prefer: "respond-async" }],
    ["POST", infer, { "Idempotency-Key": "one" }],
    ["GET", job],
    ["GET", `${job}/ID`],
    ["DELETE", `${job}/ID`],
    ["GET", "/v2/models/seven/stats"],
  ])("says when to come back: %s %s %j", async (method, path, headers) => {
    const sent = method === "POST" ? body : undefined;
    const answer = await deployment.http.ask(method, path.replace("ID", jobId), sent, headers);
    expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "1"]);
  });

  it.each(["/v2/models/seven", "/v2/models/seven/config", "/v2/health/live"])(
    "answers what it knows itself: %s",
    async (path) => expect((await deployment.http.get(path)).status).toBe(200),
  );

  it("is not ready", async () => {
    expect((await deployment.http.get("/v2/health/ready")).status).toBe(400);
  });

  it("has no metrics, and all of them when Redis is back", async () => {
    const [gateway] = deployment.gateways;
    const scrape = (): Promise<Response> => fetch(`http://${gateway?.metrics}/metrics`);
    expect((await scrape()).status).toBe(503);
    await deployment.redis.restart();
    await eventually(async () => {
      expect((await deployment.http.infer("seven", addingBody)).status).toBe(200);
      expect(JSON.parse((await deployment.http.get(`${job}/${jobId}`)).text).state).toBe("done");
      expect(await (await scrape()).text()).toMatch(/^nv_inference_count\{.*\} [1-9]/mu);
      expect((await deployment.http.get("/v2/health/ready")).status).toBe(200);
    }, 20_000);
  });
});
