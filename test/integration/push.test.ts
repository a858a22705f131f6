import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addingBody, addingModel } from "../helpers/adding-model.ts";
import { eventually } from "../helpers/eventually.ts";
import { errorOf, HttpClient } from "../helpers/http-client.ts";
import { keysCommand } from "../helpers/keys-command.ts";
import { ModelDirectory } from "../helpers/model-directory.ts";
import { runPush, startPush } from "../helpers/push-command.ts";
import { type RunningServe, startServe } from "./push-serve.ts";

const megabyte = 2 ** 20;

async function answer(http: HttpClient): Promise<number> {
  return JSON.parse((await http.infer("m", addingBody)).text).outputs[0].data[0];
}

function tensor(name: string): string {
  return `{ name: "${name}" data_type: TYPE_FP32 dims: [ 1 ] }`;
}

describe("tidepool push to a directory", { timeout: 60_000 }, () => {
  let models: ModelDirectory;
  let local: ModelDirectory;
  let running: RunningServe | undefined;
  beforeEach(() => {
    models = new ModelDirectory();
    local = new ModelDirectory();
    models.model("m", { 1: addingModel(1) });
  });
  afterEach(async () => {
    await running?.stop();
    models.remove();
    local.remove();
  });

  async function serve(...flags: readonly string[]): Promise<RunningServe> {
    running = await startServe(models.path, flags);
    return running;
  }

  /** A version of the model to be pushed, with other files beside it. */
  function version(
    number: number,
    more: Readonly<Record<string, Uint8Array | string>> = {},
  ): string {
    local.remove("m");
    local.write("m/1/model.onnx", addingModel(number));
    for (const [name, content] of Object.entries(more)) local.write(`m/${name}`, content);
    return path.join(local.path, "m");
  }

  const versionsIn = (): readonly string[] =>
    readdirSync(path.join(models.path, "m")).filter((name) => /^\d+$/u.test(name));

  it.each(["none", "poll", "explicit"])("serves what was pushed, in mode %s", async (mode) => {
    const load = mode === "explicit" ? ["--load-model=*"] : [];
    const { http, address } = await serve(`--model-control-mode=${mode}`, ...load);
    expect(await answer(http)).toBe(1);
    const pushed = await runPush(address, [version(2)]);
    expect(pushed).toMatchObject({
      code: 0,
      stdout: "model 'm', version 2: in the repository, and answers now\nversions that answer: 2\n",
    });
    expect(await answer(http)).toBe(2);
    const again = await runPush(address, [version(2)]);
    expect(again).toMatchObject({ code: 0, stdout: pushed.stdout });
    expect(await runPush(address, [version(5), "--version=5"])).toMatchObject({ code: 0 });
    expect(await answer(http)).toBe(5);
    expect(versionsIn()).toEqual(["1", "2", "5"]);
  });

  it("brings a model that was not there, with its config", async () => {
    const { http, address } = await serve();
    const folder = version(4, { "config.pbtxt": "max_batch_size: 0\n", "labels.txt": "a\n" });
    const pushed = await runPush(address, [folder, "--model=fresh"]);
    expect(pushed.stdout).toContain("model 'fresh', version 1: in the repository, and answers now");
    const config = await http.get("/v2/models/fresh/config");
    expect(JSON.parse(config.text)).toMatchObject({ name: "fresh", max_batch_size: 0 });
    expect(readdirSync(path.join(models.path, "fresh")).toSorted()).toEqual([
      "1",
      "config.pbtxt",
      "labels.txt",
    ]);
  });

  it("brings an ensemble of models that are served", async () => {
    const { http, address } = await serve();
    local.write(
      "twice/config.pbtxt",
      `platform: "ensemble" input [ ${tensor("x")} ] output [ ${tensor("y")} ] ensemble_scheduling { step [
         { model_name: "m" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "once" } },
         { model_name: "m" model_version: -1 input_map { key: "x" value: "once" } output_map { key: "y" value: "y" } } ] }`,
    );
    const pushed = await runPush(address, [path.join(local.path, "twice")]);
    expect([pushed.code, pushed.stderr]).toEqual([0, expect.stringContaining("opening")]);
    const twice = await http.infer("twice", addingBody);
    expect(JSON.parse(twice.text).outputs[0].data[0]).toBe(2);
  });

  it("leaves everything as it was when the version cannot be opened", async () => {
    const { http, address } = await serve("--model-control-mode=poll", "--repository-poll-secs=1");
    local.write("m/1/model.onnx", "no model");
    const refused = await runPush(address, [path.join(local.path, "m")]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/version 2 cannot be served, and is not kept: .*Protobuf/u);
    expect(await answer(http)).toBe(1);
    expect(versionsIn()).toEqual(["1"]);
  });

  it("goes on where it was interrupted, also when the server was restarted meanwhile", async () => {
    const { address } = await serve();
    const slow = await slowDoor(address);
    const folder = version(2, { "1/large.bin": Buffer.alloc(80 * megabyte, "large") });
    const push = startPush(slow.address, [folder]);
    const parts = (): readonly string[] =>
      readdirSync(models.path, { recursive: true, encoding: "utf8" }).filter((name) =>
        /parts\/\d+\.\d+$/u.test(name),
      );
    await eventually(() => expect(parts().length).toBeGreaterThan(1), 30_000);
    push.process.kill("SIGINT");
    expect(await push.ended).toMatchObject({ code: 130 });
    expect(versionsIn()).toEqual(["1"]);
    const there = parts().length;
    expect(there).toBeLessThan(11);
    await slow.close();
    await running?.stop();
    const { http, address: restarted } = await serve();
    const { code, stderr } = await runPush(restarted, [folder]);
    expect([code, stderr]).toEqual([0, expect.stringMatching(/going on: \d{7,} of \d+ bytes/u)]);
    expect(await answer(http)).toBe(2);
    const large = readFileSync(path.join(models.path, "m/2/large.bin"));
    expect(large.equals(Buffer.alloc(80 * megabyte, "large"))).toBe(true);
  });

  it("tells who was quicker, ends that upload when asked to, and keeps what was pushed", async () => {
    const { http, address } = await serve();
    const sha256 = "0".repeat(64);
    const files = [{ name: "model.onnx", bytes: 5, sha256 }];
    const theirs = await http.post("/v2/repository/models/m/uploads", { version: 2, files });
    const { id } = JSON.parse(theirs.text);
    const refused = await runPush(address, [version(2), "--version=2"]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`upload ${id} of other files is under way`);
    expect(refused.stderr).toContain("--restart ends that one");
    expect(await runPush(address, [version(2), "--version=2", "--restart"])).toMatchObject({
      code: 0,
    });
    const taken = await runPush(address, [version(3), "--version=2"]);
    expect([taken.code, taken.stderr]).toEqual([1, expect.stringContaining("never replaced")]);
    expect(await answer(http)).toBe(2);
  });

  it("asks for a key with scope models for the model, which the environment has", async () => {
    const keys = path.join(local.path, "keys.json");
    const create = async (...flags: readonly string[]): Promise<string> =>
      (await keysCommand("create", "--key-name=k", `--api-keys=${keys}`, ...flags)).out;
    const [good, other, reader] = [
      await create("--key-scope=models", "--key-model=m"),
      await create("--key-scope=models", "--key-model=other"),
      await create("--key-scope=read"),
    ];
    const { address } = await serve(`--api-keys=${keys}`);
    const folder = version(2);
    const nobody = await runPush(address, [folder]);
    expect([nobody.code, nobody.stderr]).toEqual([1, expect.stringContaining("TIDEPOOL_KEY")]);
    for (const key of [other, reader]) {
      const refused = await runPush(address, [folder], { TIDEPOOL_KEY: key });
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringContaining("the caller has"),
      ]);
    }
    expect(await runPush(address, [folder], { TIDEPOOL_KEY: good })).toMatchObject({ code: 0 });
  });

  it("shows the headers that a restricted server wants, which the environment has", async () => {
    const { address } = await serve("--http-restricted-api=model-repository:x-secret=open");
    const folder = version(2);
    const closed = await runPush(address, [folder]);
    expect([closed.code, closed.stderr]).toEqual([1, expect.stringContaining("'x-secret'")]);
    const wrong = await runPush(address, [folder], { TIDEPOOL_HEADERS: "X-Secret=open" });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("TIDEPOOL_HEADERS")]);
    expect(wrong.stderr).not.toContain("open");
    const good = await runPush(address, [folder], { TIDEPOOL_HEADERS: "X-Secret: open" });
    expect([good.code, good.stderr]).toEqual([0, expect.not.stringContaining("TIDEPOOL_HEADERS")]);
  });

  it("is refused by a server that takes no uploads", async () => {
    const { address } = await serve("--allow-uploads=false");
    const refused = await runPush(address, [version(2)]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("--allow-uploads")]);
    const wrong = await runPush(address, [path.join(local.path, "nothing")]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("ENOENT")]);
  });

  it("needs no more memory for a larger file", async () => {
    const { http, address, residentBytes } = await serve();
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, residentBytes())), 20);
    const push = async (megabytes: number): Promise<number> => {
      const large = Buffer.alloc(megabytes * megabyte, "0123456789abcdef");
      const { code, stderr } = await runPush(address, [version(2, { "1/large.bin": large })]);
      expect([code, stderr]).toEqual([0, expect.stringMatching(/sending: 100 %/u)]);
      return most;
    };
    const small = await push(60);
    expect((await push(300)) - small).toBeLessThan(120 * megabyte);
    clearInterval(watch);
    expect(await answer(http)).toBe(2);
  });

  it("cannot leave the folder of its model", async () => {
    const { http } = await serve();
    const sha256 = "0".repeat(64);
    for (const name of ["../x", "/etc/x", "a/../../x", ".hidden"]) {
      const files = [{ name, bytes: 1, sha256 }];
      const refused = await http.post("/v2/repository/models/m/uploads", { files });
      expect([refused.status, errorOf(refused)]).toEqual([400, expect.stringContaining("file ")]);
    }
    for (const model of ["..", "%2e%2e", "a%2fb", ".tidepool-uploads", "..%2f..%2fx"]) {
      const files = [{ name: "x", bytes: 1, sha256 }];
      const place = `/v2/repository/models/${model}/uploads`;
      const refused = await http.post(place, { files });
      expect([model, refused.status >= 400]).toEqual([model, true]);
    }
    expect(readdirSync(models.path)).toEqual(["m"]);
  });
});

/** A way to the server that takes its time over each part. */
async function slowDoor(address: string): Promise<{ address: string; close(): Promise<void> }> {
  const upstream = new HttpClient(address);
  const server: Server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const pass = async (): Promise<void> => {
        const { method = "", url = "", headers } = incoming;
        const digest = headers["content-digest"];
        const more = digest === undefined ? {} : { "content-digest": String(digest) };
        const { status, text } = await upstream.ask(method, url, Buffer.concat(chunks), more);
        outgoing.writeHead(status).end(text);
      };
      const pause = incoming.method === "PUT" ? 500 : 0;
      setTimeout(() => void pass().catch(() => outgoing.destroy()), pause);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const listening = server.address();
  if (typeof listening !== "object" || listening === null) throw new Error("no port");
  return {
    address: `127.0.0.1:${listening.port}`,
    async close() {
      upstream.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
