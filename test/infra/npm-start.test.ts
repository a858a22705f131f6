import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");

it("passes flags of npm start on, and SIGTERM to npm ends the server with 0", async () => {
  const models = mkdtempSync(path.join(tmpdir(), "tidepool-npm-"));
  const flags = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
  const npm = spawn("npm", ["start", "--", `--model-repository=${models}`, ...flags], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exit = once(npm, "exit");
  let http = "";
  let ready = 0;
  for await (const line of createInterface(npm.stdout)) {
    http ||= /"http":"(?<address>[^"]+)"/u.exec(line)?.groups?.["address"] ?? "";
    if (http !== "" && !npm.killed) {
      ready = (await fetch(`http://${http}/v2/health/ready`)).status;
      npm.kill("SIGTERM");
    }
  }
  expect(ready).toBe(200);
  expect(await exit).toEqual([0, null]);
  await expect(fetch(`http://${http}/v2/health/live`)).rejects.toThrow("fetch failed");
  rmSync(models, { recursive: true });
});

it("serves no examples where the environment names the models", () => {
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"];
  const { status, stderr } = spawnSync(process.execPath, ["infra/setup/start.js", ...ports], {
    cwd: root,
    env: { ...process.env, TIDEPOOL_MODEL_REPOSITORY: "/nowhere" },
    encoding: "utf8",
    timeout: 20_000,
  });
  expect(stderr).toContain("--model-repository: given /nowhere");
  expect(status).toBe(2);
}, 30_000);
