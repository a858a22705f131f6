import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileKeyStore } from "../../auth/file-key-store.ts";
import { createKey } from "../../auth/key-changes.ts";
import { anyPurpose, keyStoreCases } from "./key-store-cases.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tidepool-keys-"));
  file = path.join(folder, "keys.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("fileKeyStore", () => {
  keyStoreCases(async () => fileKeyStore(file));

  it("writes a file that only its owner may read, and leaves nothing beside it", async () => {
    await createKey(fileKeyStore(file), anyPurpose, 0);
    chmodSync(file, 0o644);
    await createKey(fileKeyStore(file), anyPurpose, 0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["keys.json"]);
  });

  it("takes a missing file for no keys only when the first one is made", async () => {
    await expect(fileKeyStore(file).all()).rejects.toThrow("ENOENT");
    await expect(fileKeyStore(file).version()).rejects.toThrow("ENOENT");
    await createKey(fileKeyStore(file), anyPurpose, 0);
    expect(await fileKeyStore(file).all()).toHaveLength(1);
  });

  it.each([
    ["", "given no JSON"],
    ["{", "given no JSON"],
    ["[]", 'expected an object with a list "keys"'],
    ['{"keys":{}}', 'expected an object with a list "keys"'],
    ['{"keys":[{"id":1}]}', "id: given 1, expected 12 hexadecimal digits"],
  ])("neither reads nor changes a file that holds %j", async (text, message) => {
    writeFileSync(file, text);
    const store = fileKeyStore(file);
    await expect(store.all()).rejects.toThrow(message);
    await expect(createKey(store, anyPurpose, 0)).rejects.toThrow(message);
    expect(statSync(file).size).toBe(text.length);
    expect(readdirSync(folder)).toEqual(["keys.json"]);
  });
});
