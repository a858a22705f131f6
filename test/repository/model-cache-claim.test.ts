import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Claim, readClaim } from "../../repository/model-cache-claim.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-claim-"));
const file = path.join(folder, "it");
afterEach(() => rmSync(file, { force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function take(note = {}): Promise<Claim<object>> {
  const claim = await Claim.take<object>(file, note);
  if (!claim) throw new Error("taken");
  return claim;
}

/** As if the claim were another process's. */
function rewrite(change: object): void {
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), ...change }));
}

async function deadProcess(): Promise<number | undefined> {
  const child = spawn("true");
  await once(child, "exit");
  return child.pid;
}

describe("Claim", () => {
  it("is one's at a time, and another's after that", async () => {
    const takers = await Promise.all([1, 2, 3].map(() => Claim.take<object>(file, {})));
    const [winner] = takers.filter((claim) => claim !== undefined);
    expect(takers.filter((claim) => claim !== undefined)).toHaveLength(1);
    await winner?.release();
    await (await take()).release();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("tells its latest note", async () => {
    const claim = await take({ step: 1 });
    expect(await readClaim(file)).toEqual({ step: 1 });
    await Promise.all([claim.note({ step: 2 }), claim.note({ step: 3 })]);
    expect(await readClaim(file)).toEqual({ step: 3 });
    await claim.release();
    expect(await readClaim(file)).toBeUndefined();
  });

  it("is void when its process is dead", async () => {
    const claim = await take();
    rewrite({ pid: await deadProcess() });
    expect(await readClaim(file)).toBeUndefined();
    const next = await take({ mine: true });
    expect(await readClaim(file)).toEqual({ mine: true });
    await Promise.all([claim.release(), next.release()]);
  });

  it("of a process elsewhere is void when it has been silent for long", async () => {
    const claim = await take();
    rewrite({ pid: await deadProcess(), place: "elsewhere" });
    expect(await readClaim(file)).toEqual({});
    expect(await Claim.take(file, {})).toBeUndefined();
    expect(await readClaim(file, Date.now() + 60_000)).toBeUndefined();
    await claim.release();
  });

  it("is void when its file is damaged", async () => {
    writeFileSync(file, "{");
    const claim = await take({ mine: true });
    expect(await readClaim(file)).toEqual({ mine: true });
    await claim.release();
  });
});
