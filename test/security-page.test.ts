import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { scopes } from "../auth/scope.ts";
import { startIssuer } from "./helpers/token-issuer.ts";
import { startTidepool } from "./helpers/tidepool-process.ts";

const root = path.resolve(import.meta.dirname, "..");
const page = readFileSync(path.join(root, "docs/security.md"), "utf8");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-page-"));
const run = promisify(execFile);
afterAll(() => rmSync(folder, { recursive: true }));

/** The commands of each block. */
const blocks = Array.from(page.matchAll(/^```sh\n(?<text>.*?)^```$/gmsu), ([, text = ""]) =>
  text.trim().split("\n"),
);

async function shell(command: string, env: NodeJS.ProcessEnv): Promise<string> {
  const here = command
    .replaceAll("npx tidepool", `${process.execPath} ${root}/cli/main.ts`)
    .replaceAll("keys.json", path.join(folder, "keys.json"));
  return (await run("bash", ["-c", here], { env: { ...process.env, ...env } })).stdout;
}

function flagsOf(command: string): string[] {
  return command.replace("keys.json", path.join(folder, "keys.json")).split(" ").slice(3);
}

describe("docs/security.md", () => {
  it("shows commands that make a key, serve, and call with it", async () => {
    const [create = "", serve = "", ...calls] = blocks[0] ?? [];
    const key = (await shell(`${create}; echo $KEY`, {})).trim();
    const server = await startTidepool(flagsOf(serve));
    expect(calls).toHaveLength(2);
    for (const call of calls) {
      const here = call.replace("localhost:8000", server.http);
      expect(JSON.parse(await shell(here, { KEY: key }))).toMatchObject({ name: "topics" });
      expect(await shell(here, { KEY: "" })).toContain("error");
    }
    await server.stop();
  }, 60_000);

  it("shows commands that list, make, rotate and revoke keys", async () => {
    const [list = "", create = "", rotate = "", revoke = ""] = blocks[1] ?? [];
    const key = await shell(create, {});
    const env = { ID: key.slice(3, 15) };
    expect(await shell(list, {})).toContain(`${env.ID}  nightly  blue`);
    expect(await shell(rotate, env)).toMatch(/^tp_/u);
    expect(await shell(revoke, env)).toBe("");
    expect(await shell(list, {})).not.toContain(env.ID);
  }, 30_000);

  it("shows flags that take tokens", async () => {
    const issuer = await startIssuer();
    const [serve = ""] = blocks[2] ?? [];
    const server = await startTidepool(
      flagsOf(serve.replace("https://issuer.example/jwks", issuer.url.href)),
    );
    const authorization = `Bearer ${await issuer.sign()}`;
    const answer = await fetch(`http://${server.http}/v2`, { headers: { authorization } });
    expect(answer.status).toBe(200);
    await server.stop();
    issuer.close();
  }, 60_000);

  it("names every scope", () => {
    expect(scopes.filter((scope) => !page.includes(`| \`${scope}\` `))).toEqual([]);
  });
});
