import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readEdgeSecrets } from "../../cli/edge-secrets.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-secrets-"));
const file = path.join(folder, "secrets");
afterAll(() => rmSync(folder, { recursive: true }));

const secret = "0123456789abcdef".repeat(2);

describe("readEdgeSecrets", () => {
  it("takes one a line, without what stands around it", async () => {
    writeFileSync(file, `${secret}\r\n\n  ${secret}b `);
    expect(await readEdgeSecrets(file)).toEqual([secret, `${secret}b`]);
  });

  it.each<[what: string, text: string, message: string]>([
    ["none", "\n", "given 0 secrets, expected 1 to 8, one a line"],
    ["too many", `${secret}\n`.repeat(9), "given 9 secrets, expected 1 to 8"],
    ["a short one", `${secret}\nshort`, "given a secret of 5 characters, expected at least 32"],
  ])("refuses a file with %s, and does not say what it is", async (_, text, message) => {
    writeFileSync(file, text);
    await expect(readEdgeSecrets(file)).rejects.toThrow(`--edge-secret-file: ${message}`);
    await expect(readEdgeSecrets(file)).rejects.not.toThrow(secret);
  });

  it("refuses a file that cannot be read", async () => {
    await expect(readEdgeSecrets("/nowhere/s")).rejects.toThrow("given /nowhere/s, which cannot");
  });
});
