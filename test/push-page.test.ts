import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { uploadFlags } from "../cli/flags/models.ts";
import { httpNeeds } from "../gateway/policy.ts";
import { startTidepool } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/models.md"), "utf8");
const [, section = ""] = page.split("\n## Push\n");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-page-"));
const run = promisify(execFile);
afterAll(() => rmSync(folder, { recursive: true }));

describe("docs/models.md, Push", () => {
  it("shows commands that serve, push and activate, and what a push prints", async () => {
    const [commands = "", printed = ""] = Array.from(
      section.matchAll(/^```(?:sh)?\n(?<text>.*?)^```$/gmsu),
      ([, text = ""]) => text,
    );
    const [serve = "", ...calls] = commands.trim().split("\n");
    const models = path.join(folder, "models");
    mkdirSync(models);
    const server = await startTidepool(serve.replace("=models", `=${models}`).split(" ").slice(3));
    const outputs: string[] = [];
    for (const call of calls) {
      const here = call
        .replace("npx tidepool", `${process.execPath} cli/main.ts`)
        .replace("localhost:8000", server.http);
      const env = { ...process.env, TIDEPOOL_URL: `http://${server.http}` };
      outputs.push((await run("bash", ["-c", here], { cwd: root, env })).stdout);
    }
    await server.stop();
    expect(outputs[0]).toBe(printed);
    expect(outputs[1]).toContain("model 'digits', version 2: in the repository, and answers now");
    expect(JSON.parse(outputs[2] ?? "")).toEqual({
      model_name: "digits",
      serving_versions: ["2"],
    });
  }, 60_000);

  it("tells of every path and every flag", () => {
    const base = "/v2/repository/models/:model";
    const paths = Object.keys(httpNeeds).filter(
      (one) => one.startsWith(`${base}/uploads`) || one.endsWith("/activate"),
    );
    expect(paths.length).toBeGreaterThan(5);
    for (const one of paths) {
      const rest = one.slice(base.length).replace(":upload", "<id>");
      expect(section).toContain(`${rest.replace(":file", "<file>").replace(":part", "<part>")}\``);
    }
    for (const flag of Object.keys(uploadFlags)) expect(section).toContain(`--${flag}`);
  });
});
