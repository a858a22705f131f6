import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpEnv } from "../../../gateway/http/exchange.ts";
import { withSecurityHeaders } from "../../../gateway/http/security-headers.ts";
import { listen } from "../../../gateway/listen.ts";
import { HttpStand } from "./http-stand.ts";

describe("withSecurityHeaders", () => {
  it("keeps browsers from guessing what an answer is", async () => {
    const stand = await HttpStand.start();
    onTestFinished(() => stand.stop());
    const answers = [
      await stand.get("/v2"),
      await stand.get("/nowhere"),
      await stand.get("/v2/models/id_fp32/config"),
      await stand.post("/v2/repository/index"),
      await stand.ask("PUT", "/v2"),
    ];
    for (const { headers } of answers) expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(answers[0]?.headers).not.toHaveProperty("content-security-policy");
  });

  it("bounds what a page may do", async () => {
    const app = new Hono<HttpEnv>();
    app.get("/", (context) => context.html("<h1>tidepool</h1>"));
    const server = createServer(getRequestListener(withSecurityHeaders(app.fetch)));
    onTestFinished(() => void server.close());
    const port = await listen(server, { host: "127.0.0.1", port: 0 });
    const page = await fetch(`http://127.0.0.1:${port}/`);
    expect(await page.text()).toBe("<h1>tidepool</h1>");
    expect(page.headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    expect(page.headers.get("x-frame-options")).toBe("DENY");
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
  });
});
