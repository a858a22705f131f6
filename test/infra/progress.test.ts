import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { eventually } from "../helpers/eventually.ts";

const progress = path.join(import.meta.dirname, "../../infra/setup/progress.js");

it("ends what it runs when it is ended itself", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "tidepool-progress-"));
  const idFile = path.join(folder, "id");
  const work = `require("node:fs").writeFileSync(${JSON.stringify(idFile)}, String(process.pid)); setInterval(() => {}, 1000)`;
  const setUp = `
    import { execute } from ${JSON.stringify(progress)};
    await execute(process.execPath, ["-e", ${JSON.stringify(work)}]);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", setUp]);
  const id = await eventually(() => {
    expect(existsSync(idFile)).toBe(true);
    const written = Number(readFileSync(idFile, "utf8"));
    expect(written).toBeGreaterThan(0);
    return written;
  });
  child.kill("SIGTERM");
  await once(child, "exit");
  await eventually(() => expect(() => process.kill(id, 0)).toThrow("ESRCH"));
  rmSync(folder, { recursive: true });
});
