import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { bundleEdge } from "../../helpers/edge-worker.ts";

const root = path.resolve(import.meta.dirname, "../../..");

/** It is loaded wherever a first call arrives. */
const mostBytes = 80 * 1024;

describe("wrangler.toml", () => {
  it("bundles the edge Worker with all its bindings, and small", async () => {
    const { code, said } = await bundleEdge();
    expect(Buffer.byteLength(code)).toBeLessThan(mostBytes);
    for (const name of ["env.KEYS", "env.RATE_LIMIT (1000 requests/60s)", "env.ORIGINS"]) {
      expect(said).toContain(name);
    }
  }, 60_000);

  it("tells the Worker the same limit as its binding, and names no account", () => {
    const text = readFileSync(path.join(root, "wrangler.toml"), "utf8");
    const [, limit, period] = /simple = \{ limit = (\d+), period = (\d+) \}/u.exec(text) ?? [];
    expect(text).toContain(`\nRATE_LIMIT_REQUESTS = ${limit}\n`);
    expect(text).toContain(`\nRATE_LIMIT_SECONDS = ${period}\n`);
    expect(text).not.toMatch(/account_id|[0-9a-f]{32}/u);
  });
});
