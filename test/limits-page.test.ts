import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { flagTable } from "../cli/flag-table.ts";
import { limitSpellings, parseLimitsFile } from "../cli/limits-file.ts";
import { eventually } from "./helpers/eventually.ts";
import { commandsOf } from "./helpers/shell-commands.ts";
import { startTidepool } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/limits.md"), "utf8");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-page-"));
const run = promisify(execFile);
afterAll(() => rmSync(folder, { recursive: true }));

const file = path.join(folder, "keys.json");

async function shell(command: string, env: NodeJS.ProcessEnv): Promise<string> {
  const here = command
    .replaceAll("npx tidepool", `${process.execPath} ${root}/cli/main.ts`)
    .replaceAll("keys.json", file);
  const { stdout, stderr } = await run("bash", ["-c", here], { env: { ...process.env, ...env } });
  return stdout + stderr;
}

describe("docs/limits.md", () => {
  it("shows commands that make a key with limits, meet them, and change them", async () => {
    const [create = "", serve = "", call = "", change = ""] = commandsOf("docs/limits.md");
    const key = /tp_\S+/u.exec(await shell(`${create}; echo $KEY`, {}))?.[0];
    const server = await startTidepool(serve.replace("keys.json", file).split(" ").slice(3));
    const infer = (): Promise<string> =>
      shell(call.replace("localhost:8000", server.http), { KEY: key });
    const first = await infer();
    expect(first).toContain("HTTP/1.1 200 OK");
    const [policy = ""] = /RateLimit-Policy: .*/u.exec(page) ?? [];
    expect(first).toContain(policy);
    expect(first).toMatch(/RateLimit: "key-in-flight";r=7, .*"key-daily-items";r=1;t=\d+/u);
    const second = await infer();
    expect(second).toContain("HTTP/1.1 429 Too Many Requests");
    expect(second).toMatch(/Retry-After: \d+/u);
    expect(second).toContain("items a day of key 'batch': given 2 more, expected at most 3");
    expect(await shell(change, { KEY: key })).toContain("has these limits: in-flight=64");
    await eventually(async () => expect(await infer()).toContain("200 OK"));
    await server.stop();
  }, 60_000);

  it("shows a file of limits that is read", () => {
    const [, yaml = ""] = /```yaml\n(?<text>.*?)```/su.exec(page) ?? [];
    expect(parseLimitsFile(yaml, "limits.yaml").tenants.get("blue")).toEqual({
      itemsPerSecond: 5000,
      dailyItems: 10_000_000,
    });
  });

  it("names every limit, and the flags that bound the server with their defaults", () => {
    for (const name of Object.values(limitSpellings)) expect(page).toContain(`| \`${name}\``);
    const rows = page.split("\n");
    for (const name of ["max-requests-in-flight", "max-model-requests-in-flight"] as const) {
      const row = rows.find((line) => line.includes(`\`--${name}\``));
      expect(row).toContain(`: ${flagTable[name].default}`);
    }
  });
});
