import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { auditActions, auditFields } from "../telemetry/audit-log.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { eventually } from "./helpers/eventually.ts";
import { commandsOf } from "./helpers/shell-commands.ts";
import { startTidepool } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/audit.md"), "utf8");
const run = promisify(execFile);

describe("docs/audit.md", () => {
  it("shows commands and the line that comes of them", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "tidepool-page-"));
    const here = (command: string): string => command.replace("audit.log", `${folder}/audit.log`);
    const [serve = "", change = "", show = ""] = commandsOf("docs/audit.md").map(here);
    const server = await startTidepool(serve.split(" ").slice(3));
    await run("bash", ["-c", change.replace("localhost:8000", server.http)]);
    const shown = await eventually(async () => {
      const { stdout } = await run("bash", ["-c", show]);
      return JSON.parse(stdout);
    });
    const example = /^```json\n(?<text>.*?)^```$/msu.exec(page)?.groups?.["text"] ?? "";
    expect({ ...shown, time: "" }).toEqual({ ...JSON.parse(example), time: "" });
    await server.stop();
    rmSync(folder, { recursive: true });
  }, 60_000);

  it("names every action and every field", () => {
    expect(auditActions.filter((action) => !page.includes(`| \`${action}\` `))).toEqual([]);
    const fields = auditFields({
      action: "model.load",
      subject: "m",
      principal: { name: "key:1", title: "ci", tenant: "blue" },
      via: "http",
      address: "127.0.0.1",
      requestId: "r",
      details: { files: [] },
      cause: new InferenceError(StatusCode.Internal, "no"),
    });
    expect(Object.keys(fields)).toHaveLength(11);
    expect(Object.keys(fields).filter((field) => !page.includes(`\`${field}\``))).toEqual([]);
  });
});
