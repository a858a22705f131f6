import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorOf } from "../../helpers/http-client.ts";
import { HttpStand } from "./http-stand.ts";

const body = { inputs: [{ name: "IN0", datatype: "FP32", shape: [1, 4], data: [1, 2, 3, 4] }] };
const asynchronous = { Prefer: "respond-async" };
const webhook = { "Webhook-URL": "https://hooks.example/" };

let stand: HttpStand;
beforeAll(async () => {
  stand = await HttpStand.start();
});
afterAll(() => stand.stop());

describe("Webhook-URL", () => {
  it("is refused by a server that sends none", async () => {
    const answer = await stand.infer("batch", body, { ...asynchronous, ...webhook });
    expect(answer.status).toBe(501);
    expect(errorOf(answer)).toContain("--webhook-secret-file");
    expect(JSON.parse((await stand.get("/v2/jobs")).text)).toEqual({ jobs: [] });
  });

  it.each([{}, { "Idempotency-Key": "key" }, { Prefer: "wait=10" }])(
    "is refused without respond-async: %j",
    async (headers) => {
      const answer = await stand.infer("batch", body, { ...webhook, ...headers });
      expect(answer.status).toBe(400);
      expect(errorOf(answer)).toContain("respond-async");
    },
  );
});

describe("GET /v2/jobs/{id}/deliveries", () => {
  it("is empty for a job without a webhook, and there is none for no job", async () => {
    const { id } = JSON.parse((await stand.infer("batch", body, asynchronous)).text);
    const answer = await stand.get(`/v2/jobs/${id}/deliveries`);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { deliveries: [] }]);
    expect((await stand.get("/v2/jobs/j_none/deliveries")).status).toBe(404);
    expect((await stand.post(`/v2/jobs/${id}/deliveries`, "")).status).toBe(405);
  });
});
