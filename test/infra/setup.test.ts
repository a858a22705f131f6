import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const setup = path.resolve(import.meta.dirname, "../../infra/setup");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-setup-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A script that does something with one of the set-up's modules. */
function script(name: string, module: string, source: string): string {
  const file = path.join(folder, `${name}.mjs`);
  writeFileSync(
    file,
    `import * as it from ${JSON.stringify(path.join(setup, module))};\n${source}`,
  );
  return file;
}

describe("launch", () => {
  const child = path.join(folder, "child.mjs");
  writeFileSync(
    child,
    `if (process.argv[2]) process.exit(Number(process.argv[2]));
    process.on("SIGTERM", () => process.exit(42));
    setInterval(() => {}, 1000);
    console.log("up");`,
  );
  const launcher = script(
    "launcher",
    "launch.js",
    `process.exitCode = await it.launch([${JSON.stringify(child)}, ...process.argv.slice(2)]);`,
  );

  it("ends with the exit code of what it runs", () => {
    expect(spawnSync(process.execPath, [launcher, "7"]).status).toBe(7);
  });

  it("passes SIGTERM on and waits for the end", async () => {
    const running = spawn(process.execPath, [launcher], { stdio: ["ignore", "pipe", "inherit"] });
    await once(running.stdout, "data");
    running.kill("SIGTERM");
    expect(await once(running, "exit")).toEqual([42, null]);
  });

  it("tells of a signal as shells do", async () => {
    const running = spawn(process.execPath, [launcher], { stdio: ["ignore", "pipe", "inherit"] });
    await once(running.stdout, "data");
    running.kill("SIGHUP");
    expect(await once(running, "exit")).toEqual([128 + 1, null]);
  });
});

describe("unlessStamped", () => {
  const input = path.join(folder, "input");
  const stamp = path.join(folder, "kept", "stamp");
  const stamped = script(
    "stamped",
    "stamp.js",
    `await it.unlessStamped({ stamp: ${JSON.stringify(stamp)}, inputs: [${JSON.stringify(input)}],
      work: async () => { if (process.argv[2]) throw new Error("cut off"); console.log("worked"); } });`,
  );
  const run = (...args: readonly string[]) =>
    spawnSync(process.execPath, [stamped, ...args], { encoding: "utf8" }).stdout;

  it("works once for one input, and again after a failure", () => {
    writeFileSync(input, "one");
    expect(run("fail")).toBe("");
    expect(existsSync(stamp)).toBe(false);
    expect([run(), run()]).toEqual(["worked\n", ""]);
    writeFileSync(input, "two");
    expect([run(), run()]).toEqual(["worked\n", ""]);
    expect(readFileSync(stamp, "utf8")).toMatch(/^[0-9a-f]{64}$/u);
  });
});

function counts(report: string): string {
  const file = path.join(folder, "report.json");
  writeFileSync(file, report);
  return countsOf(file);
}

function countsOf(file: string): string {
  const args = [path.join(setup, "test-counts.js"), file];
  return spawnSync(process.execPath, args, { encoding: "utf8" }).stdout;
}

describe("tidepool", () => {
  it("installs the packages that a fresh clone lacks before it runs the command", () => {
    const clone = path.join(folder, "clone");
    mkdirSync(path.join(clone, "cli"), { recursive: true });
    cpSync(setup, path.join(clone, "infra", "setup"), { recursive: true });
    const name = { name: "clone", version: "1.0.0" };
    writeFileSync(path.join(clone, "package.json"), JSON.stringify({ ...name, type: "module" }));
    const lock = { ...name, lockfileVersion: 3, requires: true, packages: { "": name } };
    writeFileSync(path.join(clone, "package-lock.json"), JSON.stringify(lock));
    writeFileSync(
      path.join(clone, "cli", "main.ts"),
      `import { existsSync } from "node:fs";
      const installed: boolean = existsSync(new URL("../node_modules/.tidepool-stamp", import.meta.url));
      process.stdout.write([...process.argv.slice(2), installed].join(" "));`,
    );
    const launcher = path.join(clone, "infra", "setup", "tidepool.js");
    const { stdout } = spawnSync(process.execPath, [launcher, "keys"], { encoding: "utf8" });
    expect(stdout).toBe("keys true");
  }, 60_000);
});

describe("test-counts", () => {
  const report = { numPassedTests: 3, numFailedTests: 1, numPendingTests: 0, numTodoTests: 0 };

  it("counts what a report says in one line", () => {
    expect(counts(JSON.stringify({ ...report, testResults: [] }))).toBe("3 passed, 1 failed\n");
  });

  it("counts a file that could not start as a failure, and says what was skipped", () => {
    const testResults = [{ status: "failed", assertionResults: [] }];
    expect(counts(JSON.stringify({ ...report, numPendingTests: 2, testResults }))).toBe(
      "3 passed, 2 failed, 2 skipped\n",
    );
  });

  it("counts a missing report as a failure", () => {
    expect(countsOf(path.join(folder, "none.json"))).toBe("0 passed, 1 failed\n");
  });
});
