import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { anonymous } from "../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { AuditFile } from "../../telemetry/audit-file.ts";
import { auditFields, type AuditRecord } from "../../telemetry/audit-log.ts";
import type { LogFields } from "../../telemetry/logger.ts";

const run = promisify(execFile);

let folder: string;
let file: string;
let told: string[];
let spare: LogFields[];
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tidepool-audit-"));
  file = path.join(folder, "logs", "audit.log");
  mkdirSync(path.dirname(file));
  told = [];
  spare = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

function opened(at = file): AuditFile {
  return new AuditFile({
    file: at,
    log: { error: (text) => told.push(text), info: (text) => told.push(text) },
    spare: (fields) => spare.push(fields),
    process: "gateway",
  });
}

function record(subject: string, more: Partial<AuditRecord> = {}): AuditRecord {
  return { action: "model.load", subject, principal: anonymous, via: "http", ...more };
}

/** Writes twenty lines where there is room for a few, makes room, and writes one more; tells which went elsewhere. */
const fillingProgram = `
  import { execFileSync } from "node:child_process";
  const { AuditFile } = await import("${path.resolve(import.meta.dirname, "../../telemetry/audit-file.ts")}");
  const log = { error() {}, info() {} };
  const audit = new AuditFile({ file: process.env.FILE, log, spare: ({ subject }) => console.log(subject) });
  const principal = { name: "anonymous", tenant: "default" };
  for (let i = 0; i <= 20; i++) {
    if (i === 20) execFileSync("prlimit", ["--pid", process.pid, "--fsize=unlimited:unlimited"]);
    audit.write({ action: "model.load", subject: String(i), principal, via: "http" });
    await audit.close();
  }
`;

/** What the lines of a file are about. */
function subjects(from = file): readonly unknown[] {
  return readFileSync(from, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).subject);
}

describe("AuditFile", () => {
  it("adds a line for each change behind what is there, for its owner alone", async () => {
    const first = opened();
    first.write(record("a"));
    await first.close();
    const second = opened();
    second.write(record("b"));
    second.write(record("c"));
    await second.close();
    expect(subjects()).toEqual(["a", "b", "c"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, "utf8").split("\n")[0] ?? "")).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/u),
      process: "gateway",
      action: "model.load",
      subject: "a",
      result: "OK",
      principal: "anonymous",
      tenant: "default",
      via: "http",
    });
  });

  it("loses no line while somebody moves the file away again and again", async () => {
    const audit = opened();
    const all = Array.from({ length: 300 }, (_, i) => String(i));
    for (const [i, subject] of all.entries()) {
      audit.write(record(subject));
      if (i % 50 === 49) {
        await audit.close();
        renameSync(file, `${file}.${i}`);
      } else if (i % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    audit.write(record("last"));
    await audit.close();
    const kept = readdirSync(path.dirname(file)).flatMap((name) =>
      subjects(path.join(path.dirname(file), name)),
    );
    expect(kept).toHaveLength(301);
    expect(new Set(kept)).toEqual(new Set([...all, "last"]));
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("puts lines elsewhere while its disk takes none, and says so once", async () => {
    const audit = opened("/dev/full");
    for (const subject of ["a", "b", "c"]) {
      audit.write(record(subject));
      await audit.close();
    }
    expect(spare.map(({ subject }) => subject)).toEqual(["a", "b", "c"]);
    expect(told).toEqual([expect.stringContaining("/dev/full cannot be written")]);
  });

  it("goes on in the file when that can be written again", async () => {
    const audit = opened();
    const away = path.join(folder, "away");
    renameSync(path.dirname(file), away);
    audit.write(record("a"));
    await audit.close();
    mkdirSync(path.dirname(file));
    audit.write(record("b"));
    await audit.close();
    expect(spare.map(({ subject }) => subject)).toEqual(["a"]);
    expect(subjects()).toEqual(["b"]);
    expect(told.map((text) => text.slice(-20))).toHaveLength(2);
    expect(told[1]).toContain("is written again");
  });

  it("begins a new line behind one that a full disk has cut off", async () => {
    const limited = `ulimit -S -f 1; exec ${process.execPath} --input-type=module -e "$PROGRAM"`;
    const env = { ...process.env, PROGRAM: fillingProgram, FILE: file };
    const { stdout } = await run("bash", ["-c", limited], { env });
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const torn = lines.filter((line) => !line.endsWith("}"));
    expect(torn).toHaveLength(1);
    const kept = lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line).subject);
    expect(new Set([...kept, ...stdout.trim().split("\n")]).size).toBe(21);
    expect(kept.at(-1)).toBe("20");
  });

  it("has its lines written by a process that ends at once", () => {
    const audit = opened();
    audit.write(record("a"));
    audit.write(record("b"));
    audit.flush();
    expect(subjects()).toEqual(["a", "b"]);
  });

  it("is refused where it cannot be", () => {
    expect(() => opened(path.join(folder, "nowhere", "audit.log"))).toThrow("ENOENT");
  });
});

describe("auditFields", () => {
  it("tells why nothing came of a change", () => {
    const cause = new InferenceError(StatusCode.NotFound, "no such model");
    expect(auditFields(record("a", { cause }))).toMatchObject({
      result: "NOT_FOUND",
      error: "no such model",
    });
    expect(auditFields(record("a", { cause: new Error("/etc/secret") }))).toMatchObject({
      result: "INTERNAL",
      error: "internal error; the server's log has the cause",
    });
  });

  it("cuts what clients may make long", () => {
    const long = "x".repeat(10_000);
    const details = { files: Array.from({ length: 1000 }, () => long), key: long, offset: 3 };
    const cause = new InferenceError(StatusCode.NotFound, long);
    const principal = { ...anonymous, title: long };
    const fields = auditFields(record(long, { details, cause, requestId: long, principal }));
    expect(JSON.stringify(fields).length).toBeLessThan(7000);
    expect(fields["details"]).toMatchObject({ offset: 3 });
  });
});
