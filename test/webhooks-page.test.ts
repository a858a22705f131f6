import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { webhookFlags } from "../cli/flags/webhooks.ts";
import { endProcess } from "./helpers/end-process.ts";
import { eventually } from "./helpers/eventually.ts";
import { freePort } from "./helpers/free-port.ts";
import { startTidepool, type TidepoolProcess } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/jobs.md"), "utf8");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-webhooks-page-"));
const run = promisify(execFile);

const [, section = ""] = page.split("\n## Webhooks\n");
const [make = "", serve = "", receive = "", submit = ""] = Array.from(
  section.matchAll(/^```sh\n(?<text>.*?)^```$/gmsu),
  ([, text = ""]) => text.trim().split("\n"),
).flat();

let port: number;
let server: TidepoolProcess;
let receiver: ChildProcess;
let printed = "";

function here(command: string): string {
  return command
    .replaceAll("secrets.json", path.join(folder, "secrets.json"))
    .replaceAll("9000", String(port))
    .replaceAll("localhost:8000", server?.http);
}

beforeAll(async () => {
  port = await freePort();
  await run("bash", ["-c", here(make)]);
  server = await startTidepool(here(serve).split(" ").slice(3));
  receiver = spawn("bash", ["-c", here(receive).replace(" node ", " exec node ")], { cwd: root });
  receiver.stdout?.on("data", (chunk: Buffer) => (printed += String(chunk)));
  await eventually(() => fetch(`http://127.0.0.1:${port}`, { method: "POST" }));
}, 30_000);
afterAll(async () => {
  await endProcess(receiver);
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** Gives the status of the receiver's answer. */
async function post(secret: Buffer, ageSeconds: number): Promise<number> {
  const timestamp = String(Math.floor(Date.now() / 1000) - ageSeconds);
  const body = '{"type":"job.failed","data":{}}';
  const signed = createHmac("sha256", secret).update(`one.${timestamp}.${body}`);
  const headers = {
    "webhook-id": "one",
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,other v1,${signed.digest("base64")}`,
  };
  return (await fetch(`http://127.0.0.1:${port}`, { method: "POST", body, headers })).status;
}

describe("docs/jobs.md, Webhooks", () => {
  it("shows commands by which a receiver is told of a job, and a job that leads to its result", async () => {
    const { stdout } = await run("bash", ["-c", here(submit)], { cwd: root });
    const { id } = JSON.parse(stdout);
    await eventually(() => expect(printed).toContain("\n"));
    expect(printed.startsWith(`job.completed {"job_id":"${id}","state":"done"`)).toBe(true);
    const { result } = JSON.parse(printed.slice(printed.indexOf("{")));
    const answer = await fetch(`http://${server.http}${result}`);
    expect(await answer.json()).toMatchObject({ model_name: "topics" });
  });

  it("shows a receiver that refuses what is forged or old", async () => {
    const secrets = JSON.parse(readFileSync(path.join(folder, "secrets.json"), "utf8"));
    const key = Buffer.from(secrets.default[0].slice(6), "base64");
    expect(await post(key, 0)).toBe(204);
    expect(await post(key, 400)).toBe(400);
    expect(await post(key, -400)).toBe(400);
    expect(await post(Buffer.from("forged"), 0)).toBe(400);
  });

  it("names every flag of webhooks", () => {
    const unnamed = Object.keys(webhookFlags).filter((name) => !section.includes(`--${name}`));
    expect(unnamed).toEqual([]);
  });
});
