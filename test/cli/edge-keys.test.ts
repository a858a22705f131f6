import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type KvApi, kvToken, MemoryNamespace, startKvApi } from "../helpers/kv-api.ts";
import { keysCommand } from "../helpers/keys-command.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-edge-keys-"));
const file = path.join(folder, "keys.json");
let edge: MemoryNamespace;
let api: KvApi;
beforeAll(async () => {
  edge = new MemoryNamespace();
  api = await startKvApi(edge);
});
beforeEach(() => {
  vi.stubEnv("CLOUDFLARE_API_TOKEN", kvToken);
  api.failure = undefined;
});
afterAll(() => {
  vi.unstubAllEnvs();
  api.close();
  rmSync(folder, { recursive: true });
});

function keys(...args: readonly string[]): ReturnType<typeof keysCommand> {
  return keysCommand(...args, `--api-keys=${file}`);
}

describe("tidepool keys with a KV namespace", () => {
  it("tells the edge at once of a key that is made, rotated and revoked, but no secret", async () => {
    const { out } = await keys("create", "--key-name=a", ...api.flags);
    const id = out.slice(3, 15);
    const made = JSON.parse(edge.texts.get(`api-key:${id}`) ?? "");
    expect(made).toMatchObject({ id, name: "a", scopes: ["infer", "read"], models: ["*"] });
    await keys("rotate", id, ...api.flags);
    const rotated = JSON.parse(edge.texts.get(`api-key:${id}`) ?? "");
    expect(rotated.previous.sha256).toBe(made.sha256);
    expect(JSON.stringify([...edge.texts])).not.toContain(out.slice(16));
    await keys("revoke", id, ...api.flags);
    expect(edge.texts).toEqual(new Map());
  }, 30_000);

  it("makes the edge know exactly the keys that there are", async () => {
    const ids: string[] = [];
    for (const name of ["a", "b", "c"]) {
      ids.push((await keys("create", `--key-name=${name}`)).out.slice(3, 15));
    }
    const others = ["1", "2", "3", "4", "5"].map((n) => [`api-key:00000000000${n}`, "{}"] as const);
    edge.texts = new Map([...others, ["another", "text"]]);
    const { out, told } = await keys("publish", ...api.flags);
    expect([out, told]).toEqual(["", "the edge is told of 3 keys, and has forgotten 5 others"]);
    expect([...edge.texts.keys()].toSorted()).toEqual(
      ["another", ...ids.map((id) => `api-key:${id}`)].toSorted(),
    );
  }, 30_000);

  it("shows a new key though the edge could not be told of it, and says so", async () => {
    api.failure = 403;
    const failed = keys("create", "--key-name=a", ...api.flags);
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/^tp_/u),
      stderr: expect.stringContaining(
        "the key is changed, but the edge does not know: KV namespace: its API answers with status 403: Authentication error; tidepool keys publish tells it",
      ),
    });
    await expect(failed).rejects.not.toThrow(kvToken);
  });

  it.each<[args: readonly string[], message: string]>([
    [["publish"], "keys publish: expected --kv-account-id and --kv-namespace-id"],
    [["publish", "--kv-account-id=a"], "given one of them, expected both"],
    [["publish", "--kv-account-id=a/b", "--kv-namespace-id=a"], "--kv-account-id: given 'a/b'"],
    [
      ["publish", "--kv-account-id=a", "--kv-namespace-id=a", "--kv-endpoint=http://a.example"],
      "--kv-endpoint: given 'http://a.example', expected a URL of https",
    ],
  ])("ends with one line for %j", async (args, message) => {
    await expect(keys(...args)).rejects.toThrow(message);
  });

  it("takes the token from the environment only, before it changes anything", async () => {
    vi.stubEnv("CLOUDFLARE_API_TOKEN", "");
    const before = (await keys("list")).out;
    const failed = keys("create", "--key-name=never", ...api.flags);
    await expect(failed).rejects.toThrow("CLOUDFLARE_API_TOKEN: given nothing");
    expect((await keys("list")).out).toBe(before);
  });
});
