import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listenMetrics, type MetricsServer } from "../../gateway/metrics-server.ts";
import { type KeyDesk, openKeyDesk } from "./key-desk.ts";

let desk: KeyDesk;
let server: MetricsServer;
let isReady: boolean;
beforeEach(async () => {
  isReady = true;
  desk = await openKeyDesk(false);
  server = await listenMetrics({
    host: "127.0.0.1",
    port: 0,
    text: async () => "counter 1\n",
    access: desk.access,
    health: { live: () => true, ready: async () => isReady },
  });
});
afterEach(async () => {
  await server.close();
  desk.close();
});

function get(path: string, key = "", method = "GET"): Promise<Response> {
  const headers = key === "" ? {} : { authorization: `Bearer ${key}` };
  return fetch(`http://127.0.0.1:${server.port}${path}`, { method, headers });
}

describe("listenMetrics with keys", () => {
  it("shows the metrics to those who may read about all models", async () => {
    const nobody = await get("/metrics");
    expect(nobody.status).toBe(401);
    expect(nobody.headers.get("www-authenticate")).toBe('Bearer realm="tidepool"');
    expect((await get("/metrics", await desk.key({ scopes: ["infer"] }))).status).toBe(403);
    const some = await get("/metrics", await desk.key({ models: ["a*"] }));
    expect(some.status).toBe(403);
    expect(await some.text()).toContain("for some models, expected all");
    const reader = await get("/metrics", await desk.key({ scopes: ["read"] }));
    expect([reader.status, await reader.text()]).toEqual([200, "counter 1\n"]);
  });

  it("tells probes without a key about health", async () => {
    expect((await get("/v2/health/live")).status).toBe(200);
    expect((await get("/v2/health/ready?verbose=1")).status).toBe(200);
    isReady = false;
    expect((await get("/v2/health/ready")).status).toBe(400);
    expect((await get("/v2/health/live")).status).toBe(200);
    expect((await get("/v2/health/live", "", "POST")).status).toBe(405);
    expect((await get("/v2/health/")).status).toBe(404);
    expect((await get("/v2")).status).toBe(404);
  });
});
