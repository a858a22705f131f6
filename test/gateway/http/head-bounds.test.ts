import { describe, expect, it, onTestFinished } from "vitest";
import { errorOf } from "../../helpers/http-client.ts";
import { HttpStand } from "./http-stand.ts";

const body = '{"inputs":[{"name":"IN0","shape":[1],"datatype":"FP32","data":[1]}]}';

async function start(): Promise<HttpStand> {
  const stand = await HttpStand.start();
  onTestFinished(() => stand.stop());
  return stand;
}

function headers(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${i}`, "1"]));
}

describe("refuseHead", () => {
  it("refuses more headers than any proxy adds, and names the bound", async () => {
    const stand = await start();
    // Host, Connection and Content-Length come from the client itself.
    expect((await stand.infer("id_fp32", body, headers(197))).status).toBe(200);
    const refused = await stand.infer("id_fp32", body, headers(198));
    expect(refused.status).toBe(431);
    expect(errorOf(refused)).toBe("request head: given 201 headers, expected at most 200");
  });

  it("refuses a target that is too long, and names the bound", async () => {
    const stand = await start();
    const path = `/v2/models/${"m".repeat(12_288 - "/v2/models/".length)}`;
    expect((await stand.get(path)).status).toBe(404);
    const refused = await stand.get(`${path}m`);
    expect(refused.status).toBe(414);
    expect(errorOf(refused)).toBe("request target: given 12289 bytes, expected at most 12288");
    expect((await stand.infer("m".repeat(12_288), body)).status).toBe(414);
  });

  it("leaves heads that are too long to node, with the bound in the answer", async () => {
    const stand = await start();
    const refused = await stand.infer("id_fp32", body, { "x-long": "x".repeat(16_384) });
    expect(refused.status).toBe(431);
    expect(errorOf(refused)).toContain("given more than 16384 bytes, expected at most so many");
  });
});
