import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keysCommand } from "../helpers/keys-command.ts";
import { type RedisServer, startRedis } from "../helpers/redis-server.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-keys-"));
const file = path.join(folder, "keys.json");
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true });
});

describe.each(["a file", "Redis"])("tidepool keys with %s", (kind) => {
  const where = (): readonly string[] =>
    kind === "Redis" ? ["--api-keys=redis", `--redis-url=${redis.url}`] : [`--api-keys=${file}`];
  const rows = async (): Promise<readonly string[]> =>
    (await keysCommand("list", ...where())).out.split("\n").slice(1);

  it("makes a key, shows it once, lists, rotates and revokes it", async () => {
    const made = await keysCommand(
      "create",
      ...where(),
      "--key-name=ci of blue",
      "--key-tenant=blue",
      "--key-scope=infer",
      "--key-scope=models",
      "--key-model=bert*",
      "--key-expires-days=0.5",
    );
    expect(made.out).toMatch(/^tp_[0-9a-f]{12}_[\w-]{43}$/u);
    const id = made.out.slice(3, 15);
    expect(made.told).toBe(
      `key ${id} (ci of blue) of tenant blue for infer, models of bert*: it is shown only now`,
    );
    const [row = ""] = await rows();
    expect(row.split(/ {2,}/u).slice(0, 5)).toEqual([
      id,
      "ci of blue",
      "blue",
      "infer,models",
      "bert*",
    ]);
    const [created = "", expires = ""] = row.split(/ {2,}/u).slice(5);
    expect(Date.parse(expires) - Date.parse(created)).toBe(43_200_000);
    const rotated = await keysCommand("rotate", id, ...where(), "--key-grace-secs=0");
    expect(rotated.out.slice(0, 16)).toBe(`tp_${id}_`);
    expect(rotated.out).not.toBe(made.out);
    expect(rotated.told).toContain("the one before is valid until 20");
    expect((await keysCommand("revoke", id, ...where())).told).toContain(`key ${id} (ci of blue)`);
    expect(await rows()).toEqual([]);
  });
});

describe("tidepool keys", () => {
  it("makes a key that may infer and read with all models where nothing else is said", async () => {
    const { told } = await keysCommand("create", `--api-keys=${file}`, "--key-name=a");
    expect(told).toContain("of tenant default for infer, read of *");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { out } = await keysCommand("create", `--api-keys=${file}`, "--key-name=b");
    expect(readFileSync(file, "utf8")).not.toContain(out.slice(-43));
  });

  it.each<[args: readonly string[], message: string]>([
    [[], "keys: given '', expected one of create"],
    [["make"], "keys: given 'make', expected one of create"],
    [["rotate", "a", "b"], "keys: given 'rotate', expected one of"],
    [["rotate"], "keys rotate: given no id"],
    [["list", "0123456789ab"], "keys list: given '0123456789ab'"],
    [["list"], "--api-keys: given nothing, expected a file, or redis"],
    [["create", "--api-keys=f"], "--key-name: given nothing, expected a name"],
    [["list", "--http-port=1"], "--http-port: given to keys, which has no use for it"],
    [["create", "--api-keys=f", "--key-name=a", "--key-scope=all"], "--key-scope: given 'all'"],
    [["create", "--api-keys=f", "--key-name=a", "--key-model=a/b"], 'models: given "a/b"'],
    [["create", "--api-keys=f", "--key-name=a", "--key-tenant=a b"], 'tenant: given "a b"'],
    [["list", "--api-keys=/nowhere/keys.json"], "--api-keys: given /nowhere/keys.json, ENOENT"],
    [["create", "--api-keys=/nowhere/k", "--key-name=a"], "--api-keys: given /nowhere/k, ENOENT"],
    [["revoke", "0123456789ab", `--api-keys=${file}`], "given an id that no key has"],
  ])("ends with one line for %j", async (args, message) => {
    const failed = keysCommand(...args);
    await expect(failed).rejects.toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^[^\n]+\n$/u),
    });
    await expect(failed).rejects.toThrow(message);
  });
});
