import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { logDestinations } from "../../telemetry/log-destination.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-log-"));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("logDestinations", () => {
  it("writes to a file at once", async () => {
    const open = await logDestinations();
    const file = path.join(folder, "server.log");
    open(file).write("one\n");
    expect(readFileSync(file, "utf8")).toBe("one\n");
  });

  it("throws for a file that cannot be opened", async () => {
    const open = await logDestinations();
    expect(() => open(path.join(import.meta.filename, "server.log"))).toThrow(
      "log-destination.test.ts",
    );
    // A path that is mistyped is told, and no folder made for it.
    expect(() => open(path.join(folder, "deep", "server.log"))).toThrow("ENOENT");
  });
});
