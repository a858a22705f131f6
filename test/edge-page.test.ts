import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietWrangler } from "./helpers/edge-worker.ts";
import { endProcess } from "./helpers/end-process.ts";
import { eventually } from "./helpers/eventually.ts";
import { freePort } from "./helpers/free-port.ts";
import { type KvApi, kvToken, MemoryNamespace, startKvApi } from "./helpers/kv-api.ts";
import { startTidepool, type TidepoolProcess } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/edge.md"), "utf8");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-page-"));
const run = promisify(execFile);

/** The commands of each block. */
const [tryIt = [], deploy = []] = Array.from(
  page.matchAll(/^```sh\n(?<text>.*?)^```$/gmsu),
  ([, text = ""]) => text.trim().split("\n"),
);

const environment = {
  ...process.env,
  PATH: `${path.dirname(process.execPath)}:${process.env["PATH"]}`,
  ...quietWrangler,
  WRANGLER_LOG_PATH: folder,
  WRANGLER_REGISTRY_PATH: folder,
  CLOUDFLARE_API_TOKEN: kvToken,
};

/** The command as it runs here: with files, ports and a KV namespace of its own. */
function here(command: string): string {
  const config = `--config=${root}/wrangler.toml --persist-to=${folder}/state`;
  return command
    .replace("npx tidepool", `${process.execPath} ${root}/cli/main.ts`)
    .replace(
      /npx wrangler (?<what>dev|kv key put)/u,
      `${root}/node_modules/.bin/wrangler $<what> ${config}`,
    )
    .replaceAll(/\b(?:keys\.json|edge-secret)(?=[" )]|$)/gu, `${folder}/$&`);
}

async function shell(command: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
  const env = { ...environment, ...more };
  return (await run("bash", ["-c", here(command)], { env, cwd: folder })).stdout;
}

let gateway: TidepoolProcess;
let edge: ChildProcess;
let api: KvApi;
const namespace = new MemoryNamespace();
beforeAll(async () => {
  api = await startKvApi(namespace);
});
afterAll(async () => {
  await endProcess(edge);
  await gateway.stop();
  api.close();
  rmSync(folder, { recursive: true });
});

describe("docs/edge.md", () => {
  it("shows commands that try it on one machine", async () => {
    const [secret = "", create = "", put = "", serve = "", dev = "", call = "", ...more] = tryIt;
    expect(more).toEqual([]);
    await shell(secret);
    const key = (await shell(`${create}; echo $KEY`)).trim();
    await shell(put, { KEY: key });
    gateway = await startTidepool(here(serve).split(" ").slice(3));
    const port = await freePort();
    const origins = `--var=ORIGINS:http://${gateway.http}`;
    const command = `exec ${here(dev)} ${origins} --port=${port} --inspector-port=${await freePort()}`;
    edge = spawn("bash", ["-c", command], { env: environment, cwd: folder, stdio: "ignore" });
    await eventually(async () => {
      const said = await shell(call.replace("8787", String(port)), { KEY: key });
      expect(JSON.parse(said)).toMatchObject({ name: "topics" });
    }, 30_000);
  }, 60_000);

  it("shows commands that deploy it", async () => {
    const [put = "", deployed = "", publish = "", ...more] = deploy;
    expect(more).toEqual([]);
    expect([put, deployed]).toEqual([
      "npx wrangler secret put EDGE_SECRET < edge-secret",
      "npx wrangler deploy",
    ]);
    const ids = { ACCOUNT: "acc0", NAMESPACE: "ns0" };
    await shell(`${publish} ${api.flags[2]}`, ids);
    expect([...namespace.texts.keys()]).toEqual([expect.stringMatching(/^api-key:[0-9a-f]{12}$/u)]);
  }, 30_000);
});
