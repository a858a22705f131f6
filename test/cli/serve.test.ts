import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { identityModel } from "../helpers/onnx-model.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";
import { untilUnderWay } from "../helpers/under-way.ts";

const root = path.resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-serve-"));
const models = path.join(folder, "models");
const broken = path.join(folder, "broken");
const cache = `--local-cache-directory=${path.join(folder, "cache")}`;

mkdirSync(path.join(models, "echo", "1"), { recursive: true });
writeFileSync(
  path.join(models, "echo", "1", "model.onnx"),
  identityModel([{ name: "x", datatype: "FP32", shape: [2] }, "y"]),
);
mkdirSync(path.join(broken, "bad", "1"), { recursive: true });
writeFileSync(path.join(broken, "bad", "1", "model.onnx"), "this is no model");

const request = JSON.stringify({
  inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }],
});

let server: TidepoolProcess | undefined;

async function start(...args: readonly string[]): Promise<TidepoolProcess> {
  server = await startTidepool([`--model-repository=${models}`, cache, ...args]);
  return server;
}

/** A request whose body is on its way: the server has to wait for the rest. */
async function openRequest({
  http,
  metrics,
}: TidepoolProcess): Promise<{ finish(): Promise<string> }> {
  const [host = "", port = ""] = http.split(":");
  const socket = connect(Number(port), host);
  await once(socket, "connect");
  socket.write(
    `POST /v2/models/echo/infer HTTP/1.1\r\nHost: ${http}\r\nContent-Length: ${request.length}\r\n\r\n`,
  );
  socket.write(request.slice(0, 10));
  socket.on("error", () => undefined);
  // The server must have seen the head before it is told to end.
  await untilUnderWay(metrics, 1);
  return {
    async finish() {
      socket.write(request.slice(10));
      const [answer] = await once(socket, "data");
      socket.end();
      return String(answer);
    },
  };
}

afterEach(async () => {
  if (server?.process.exitCode === null) server.process.kill("SIGKILL");
  await server?.ended;
  server = undefined;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("serve", () => {
  it("serves models over every port and ends with 0 on SIGTERM", async () => {
    const { process, http, metrics, lines, ended } = await start();
    const answer = await fetch(`http://${http}/v2/models/echo/infer`, {
      method: "POST",
      body: request,
    });
    expect(await answer.json()).toMatchObject({ outputs: [{ name: "y", data: [1, 2] }] });
    const scrape = await (await fetch(`http://${metrics}/metrics`)).text();
    expect(scrape).toContain('nv_inference_request_success{model="echo",version="1"} 1\n');
    expect(scrape).toContain("tidepool_process_resident_memory_bytes");
    process.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(lines.at(-1)).toMatchObject({ level: "info", msg: "ended" });
  });

  it("answers what is in flight before it ends, and lets nobody new in", async () => {
    const started = await start();
    const { process, http, ended } = started;
    const open = await openRequest(started);
    process.kill("SIGTERM");
    await eventually(() =>
      expect(fetch(`http://${http}/v2/health/live`)).rejects.toThrow("fetch failed"),
    );
    expect(await open.finish()).toContain("200 OK");
    expect(await ended).toBe(0);
  });

  it("ends with 1 when what is in flight takes longer than --exit-timeout-secs", async () => {
    const started = await start("--exit-timeout-secs=1");
    const { process, ended, lines } = started;
    await openRequest(started);
    process.kill("SIGINT");
    expect(await ended).toBe(1);
    expect(lines.at(-1)).toMatchObject({ level: "error" });
  });

  it("warns once of a flag without effect", async () => {
    const { lines } = await start("--http-thread-count=8");
    expect(lines.filter(({ level }) => level === "warn")).toEqual([
      expect.objectContaining({
        msg: expect.stringContaining("--http-thread-count has no effect"),
      }),
    ]);
  });

  it("ends with 1 and the reasons when a model does not load", async () => {
    const starting = startTidepool([`--model-repository=${broken}`, cache]);
    await expect(starting).rejects.toThrow(
      /"message": "failed to load model 'bad'[^]*"models": \[\s+"bad"\s+\]/u,
    );
  });

  it("serves the others with --exit-on-error=false", async () => {
    const { http } = await start(`--model-repository=${broken}`, "--exit-on-error=false");
    expect((await fetch(`http://${http}/v2/models/echo/ready`)).status).toBe(200);
    expect((await fetch(`http://${http}/v2/health/ready`)).status).toBe(400);
  });

  it("says in one line which port it cannot have", async () => {
    const { http } = await start();
    const port = http.split(":")[1];
    const args = ["cli/main.ts", "serve", `--model-repository=${models}`, cache];
    const { status, stderr } = spawnSync(process.execPath, [...args, `--http-port=${port}`], {
      cwd: root,
      encoding: "utf8",
    });
    expect(status).toBe(2);
    expect(stderr).toMatch(/^tidepool: --http-address and --http-port: given .*EADDRINUSE.*\n$/u);
  });
});
