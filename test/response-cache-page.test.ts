import { execFile } from "node:child_process";
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { responseCacheMetrics } from "../telemetry/response-cache-metrics.ts";
import { startTidepool } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/response-cache.md"), "utf8");
const run = promisify(execFile);

/** What the blocks of one language hold. */
function blocks(language: string): readonly string[] {
  const all = page.matchAll(/^```(?<language>\w*)\n(?<text>.*?)^```$/gmsu);
  return [...all].flatMap(([, found = "", text = ""]) => (found === language ? [text.trim()] : []));
}

describe("docs/response-cache.md", () => {
  it("shows a setting and commands that work", async () => {
    const [setting = ""] = blocks("");
    const [serve = "", ask = "", flush = ""] = blocks("sh");
    const models = mkdtempSync(path.join(tmpdir(), "tidepool-page-"));
    cpSync(path.join(root, "examples/models/topics"), path.join(models, "topics"), {
      recursive: true,
    });
    appendFileSync(path.join(models, "topics/config.pbtxt"), `\n${setting}\n`);
    const flags = serve.replace("examples/models", models).split(" ").slice(3);
    const server = await startTidepool(flags);
    const shell = async (command: string): Promise<string> => {
      const here = command.replace("localhost:8000", server.http);
      return (await run("bash", ["-c", here])).stdout;
    };
    const counts = async (): Promise<object> => {
      const { model_stats: stats } = JSON.parse(
        await shell("curl -s localhost:8000/v2/models/topics/stats"),
      );
      const { cache_hit: hit, cache_miss: miss } = stats[0].inference_stats;
      return { hit: hit.count, miss: miss.count };
    };
    const plain = ask.replace(" -H 'Cache-Control: no-cache'", "");
    expect(plain).not.toBe(ask);
    for (const command of [ask, plain, ask, plain])
      expect(await shell(command)).toMatch(/"data":/u);
    expect(await counts()).toEqual({ hit: 2, miss: 0 });
    expect(await shell(flush)).toBe("");
    await shell(plain);
    expect(await counts()).toEqual({ hit: 2, miss: 1 });
    await server.stop();
    rmSync(models, { recursive: true });
  }, 60_000);

  it("names every metric of the cache as a whole", () => {
    const families = responseCacheMetrics({ entries: 0, bytes: 0, maxBytes: 1, evictions: 0 });
    expect(families.filter(({ name }) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
