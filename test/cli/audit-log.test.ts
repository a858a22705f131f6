import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(path.join(tmpdir(), "tidepool-audit-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a line and ends before anything was written. */
function program(end: string): string {
  return `
    const { openAuditLog } = await import("${root}/cli/audit-log.ts");
    const { exitAtOnce } = await import("${root}/cli/drain.ts");
    const log = { always() {}, error() {}, info() {} };
    process.on("uncaughtException", () => exitAtOnce(3));
    const audit = openAuditLog({ auditLog: process.argv[1] }, log);
    const principal = { name: "anonymous", tenant: "default" };
    audit.write({ action: "model.load", subject: "m", principal, via: "http" });
    ${end}
  `;
}

describe("openAuditLog", () => {
  it.each([
    ["exits", "process.exit(3);"],
    ["ends by an error that nobody has expected", "throw new Error();"],
    ["has to leave requests behind", "audit.flush(); exitAtOnce(3);"],
  ])("keeps what was written last by a process that %s", (name, end) => {
    const file = path.join(folder, name);
    const { status } = spawnSync(process.execPath, [
      "--input-type=module",
      "--eval",
      program(end),
      file,
    ]);
    expect(status).toBe(3);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ subject: "m" });
  });
});
