import { describe, expect, it, onTestFinished } from "vitest";
import { crossOrigin, type CrossOriginRules } from "../../../gateway/http/cross-origin.ts";
import type { HttpOptions } from "../../../gateway/http/options.ts";
import { openKeyDesk } from "../key-desk.ts";
import { HttpStand } from "./http-stand.ts";

const app = "https://app.example";
const rules: CrossOriginRules = {
  origins: [app, "http://localhost:5173"],
  methods: ["GET", "POST"],
  headers: ["Content-Type", "X-API-Key"],
  maxAgeSeconds: 600,
  credentials: false,
};
const body = { inputs: [{ name: "IN0", shape: [1], datatype: "FP32", data: [1] }] };
const preflight = { "Access-Control-Request-Method": "POST" };

async function start(
  given: CrossOriginRules | undefined,
  options: Partial<HttpOptions> = {},
): Promise<HttpStand> {
  const stand = await HttpStand.start(options, given && { crossOrigin: crossOrigin(given) });
  onTestFinished(() => stand.stop());
  return stand;
}

describe("crossOrigin", () => {
  it("says nothing where nothing is allowed", async () => {
    const stand = await start(undefined);
    const answer = await stand.infer("id_fp32", body, { Origin: app });
    expect(answer.status).toBe(200);
    expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
    const asked = await stand.ask("OPTIONS", "/v2", "", { Origin: app, ...preflight });
    expect(asked.status).toBe(405);
  });

  it("lets pages of the origins read every kind of answer", async () => {
    const stand = await start(rules);
    const answers = [
      await stand.infer("id_fp32", body, { Origin: app }),
      await stand.infer("id_fp32", "{", { Origin: app }),
      await stand.ask("GET", "/v2", "", { Origin: app }),
      await stand.ask("GET", "/nowhere", "", { Origin: app }),
      await stand.ask("DELETE", "/v2", "", { Origin: app }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 500, 200, 404, 405]);
    for (const { headers } of answers) {
      expect(headers).toMatchObject({ "access-control-allow-origin": app, vary: "Origin" });
      expect(headers["access-control-expose-headers"]).toContain("Server-Timing");
      expect(headers).not.toHaveProperty("access-control-allow-credentials");
    }
  });

  it.each([
    "https://other.example",
    "https://app.example.evil.example",
    "null",
    "HTTPS://APP.EXAMPLE",
  ])("lets pages of %s read nothing", async (origin) => {
    const stand = await start(rules);
    const { headers } = await stand.infer("id_fp32", body, { Origin: origin });
    expect(headers).not.toHaveProperty("access-control-allow-origin");
    expect(headers.vary).toBe("Origin");
    const asked = await stand.ask("OPTIONS", "/v2", "", { Origin: origin, ...preflight });
    expect(asked.headers).not.toHaveProperty("access-control-allow-methods");
  });

  it("tells browsers that ask first, before any key is asked for", async () => {
    const desk = await openKeyDesk();
    onTestFinished(() => desk.close());
    const stand = await start(rules, { access: desk.access });
    const path = "/v2/models/id_fp32/infer";
    const asked = await stand.ask("OPTIONS", path, "", { Origin: app, ...preflight });
    expect(asked.status).toBe(204);
    expect(asked.headers).toMatchObject({
      "access-control-allow-origin": app,
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers": "Content-Type, X-API-Key",
      "access-control-max-age": "600",
    });
    const { status, headers } = await stand.infer("id_fp32", body, { Origin: app });
    expect([status, headers["access-control-allow-origin"]]).toEqual([401, app]);
    expect((await stand.ask("OPTIONS", path, "", { Origin: app })).status).toBe(401);
  });

  it("lets pages of any origin read answers, and send what the user has where that is allowed", async () => {
    const any = await start({ ...rules, origins: ["*"] });
    const { headers } = await any.infer("id_fp32", body, { Origin: "https://other.example" });
    expect(headers["access-control-allow-origin"]).toBe("*");
    expect(headers).not.toHaveProperty("vary");
    const known = await start({ ...rules, credentials: true });
    const answer = await known.infer("id_fp32", body, { Origin: app });
    expect(answer.headers).toMatchObject({ "access-control-allow-credentials": "true" });
  });
});
