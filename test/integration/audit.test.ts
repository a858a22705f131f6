import { mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Metadata } from "@grpc/grpc-js";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { deploy } from "../helpers/deployment.ts";
import { eventually } from "../helpers/eventually.ts";
import { GrpcClient } from "../helpers/grpc-client.ts";
import { HttpClient } from "../helpers/http-client.ts";
import { keysCommand } from "../helpers/keys-command.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { startTidepool, type TidepoolProcess } from "../helpers/tidepool-process.ts";

const models = new ModelDirectory();
models.model("steady", { 1: addingModel(1) });
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-audit-"));
const keyFile = path.join(folder, "keys.json");
const file = path.join(folder, "audit.log");
const explicit = ["--model-control-mode=explicit", "--load-model=steady"];
let server: TidepoolProcess | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
  rmSync(file, { force: true });
});
afterAll(() => {
  models.remove();
  rmSync(folder, { recursive: true });
});

interface Line {
  readonly action: string;
  readonly result: string;
  readonly principal: string;
  readonly [field: string]: unknown;
}

function linesIn(name: string): readonly Line[] {
  const text = readFileSync(name, "utf8");
  return text === ""
    ? []
    : text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
}

/** Waits until a file has so many lines. */
function lines(count: number, name = file): Promise<readonly Line[]> {
  return eventually(() => {
    const found = linesIn(name);
    expect(found.length).toBeGreaterThanOrEqual(count);
    return found;
  });
}

async function started(...args: readonly string[]): Promise<HttpClient> {
  server = await startTidepool([`--model-repository=${models.path}`, ...args]);
  return new HttpClient(server.http);
}

describe("the audit log of serve", () => {
  it("tells of changes of models, settings and keys in one file, without secrets", async () => {
    const where = [`--api-keys=${keyFile}`, `--audit-log=${file}`];
    const scopes = ["models", "admin", "infer"].map((scope) => `--key-scope=${scope}`);
    const key = (await keysCommand("create", ...where, "--key-name=ops", ...scopes)).out;
    const id = key.slice(3, 15);
    const http = await started(...where, ...explicit);
    const headers = { "X-API-Key": key };
    await http.post("/v2/repository/models/steady/unload", "", headers);
    await http.post("/v2/repository/models/nobody/load", "", headers);
    await http.post("/v2/logging", { log_verbose_level: 1 }, headers);
    const grpc = new GrpcClient(server?.grpc ?? "");
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${key}`);
    await grpc.ask("RepositoryModelLoad", { modelName: "steady" }, { metadata });
    grpc.close();
    expect((await http.infer("steady", addingBody, headers)).status).toBe(200);
    await lines(5);
    await keysCommand("revoke", id, ...where);
    http.close();
    const all = await lines(6);
    const told = all.map(({ action, result, subject, via }) => [action, subject, result, via]);
    expect(told).toEqual([
      ["key.create", id, "OK", "command"],
      ["model.unload", "steady", "OK", "http"],
      ["model.load", "nobody", "INTERNAL", "http"],
      ["log.update", undefined, "OK", "http"],
      ["model.load", "steady", "OK", "grpc"],
      ["key.revoke", id, "OK", "command"],
    ]);
    expect(all.slice(1, 5).map(({ principal }) => principal)).toEqual(
      Array.from({ length: 4 }, () => `key:${id}`),
    );
    expect(all[0]?.principal).toMatch(/^user:./u);
    expect(readFileSync(file, "utf8")).not.toContain(key.slice(-43));
  }, 60_000);

  it("begins a new file when somebody has moved it away, and loses nothing at the end", async () => {
    const http = await started(`--audit-log=${file}`, ...explicit);
    await http.post("/v2/logging", {});
    await lines(1);
    renameSync(file, `${file}.1`);
    for (let i = 0; i < 50; i++) await http.post("/v2/logging", { log_verbose_level: 0 });
    await http.post("/v2/repository/models/steady/unload");
    http.close();
    await server?.stop();
    expect(linesIn(`${file}.1`)).toHaveLength(1);
    expect(linesIn(file)).toHaveLength(51);
    expect(linesIn(file).at(-1)?.action).toBe("model.unload");
  }, 60_000);

  it("is the ordinary log by default, which no caller can silence", async () => {
    const http = await started(...explicit);
    await http.post("/v2/logging", { log_info: false, log_warning: false, log_error: false });
    await http.post("/v2/repository/models/steady/unload", "", { "X-Request-ID": "r7" });
    http.close();
    const told = await eventually(() => {
      const found = server?.lines.filter(({ msg }) => msg === "audit") ?? [];
      expect(found).toHaveLength(2);
      return found;
    });
    expect(told[1]).toMatchObject({
      level: "info",
      action: "model.unload",
      subject: "steady",
      result: "OK",
      principal: "anonymous",
      address: "127.0.0.1",
      requestId: "r7",
    });
  }, 60_000);

  it("is told elsewhere while its disk is full, and what is served goes on", async () => {
    const http = await started("--audit-log=/dev/full", ...explicit);
    expect((await http.post("/v2/logging", {})).status).toBe(200);
    expect((await http.infer("steady", addingBody)).status).toBe(200);
    http.close();
    await eventually(() => {
      const told = server?.lines.map(({ msg }) => msg) ?? [];
      expect(told).toContain("audit");
      expect(told.some((text) => text.includes("/dev/full cannot be written"))).toBe(true);
    });
  }, 60_000);

  it("tells what the repository has changed in poll mode", async () => {
    await started(`--audit-log=${file}`, "--model-control-mode=poll", "--repository-poll-secs=1");
    models.model("later", { 1: addingModel(2) });
    const [line] = await lines(1);
    expect(line).toMatchObject({
      action: "model.load",
      subject: "later",
      result: "OK",
      principal: "repository",
      via: "poll",
    });
    models.remove("later");
    const [, gone] = await lines(2);
    expect(gone).toMatchObject({
      action: "model.unload",
      subject: "later",
      principal: "repository",
    });
  }, 60_000);

  it("is refused at the start where it cannot be written", async () => {
    await expect(started("--audit-log=/nowhere/audit.log")).rejects.toThrow("ended");
  }, 60_000);
});

describe("the audit logs of two gateways", () => {
  it("tell of what each was asked", async () => {
    const files = ["one", "two"].map((name) => path.join(folder, name));
    const deployment = await deploy({
      models: models.path,
      gateways: 2,
      flags: explicit,
      gatewayFlags: (gateway) => [`--audit-log=${files[gateway]}`],
    });
    const [one, two] = deployment.gateways;
    await one?.http.post("/v2/repository/models/steady/unload");
    await two?.http.post("/v2/logging", { log_verbose_level: 0 });
    const [first, second] = await Promise.all(files.map((name) => lines(1, name)));
    await deployment.stop();
    expect(first).toEqual([
      expect.objectContaining({ process: "gateway", action: "model.unload", subject: "steady" }),
    ]);
    expect(second?.map(({ action }) => action)).toEqual(["log.update"]);
  }, 120_000);
});
