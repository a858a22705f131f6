import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { auditedKeyStore } from "../../auth/audited-key-store.ts";
import { auditedKvNamespace } from "../../auth/audited-kv-namespace.ts";
import { publishedKeys, publishKeys } from "../../auth/edge-keys.ts";
import { fileKeyStore } from "../../auth/file-key-store.ts";
import { createKey, limitKey, revokeKey, rotateKey } from "../../auth/key-changes.ts";
import type { KvNamespace } from "../../auth/kv-namespace.ts";
import { AuditLines } from "../helpers/audit-lines.ts";
import { anyPurpose } from "./key-store-cases.ts";

const somebody = { name: "user:somebody", tenant: "default" };

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "tidepool-keys-"));
  file = path.join(folder, "keys.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

class MemoryNamespace implements KvNamespace {
  readonly names = new Set<string>();
  isAway = false;

  async put(texts: ReadonlyMap<string, string>): Promise<void> {
    if (this.isAway) throw new Error("away");
    for (const name of texts.keys()) this.names.add(name);
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) this.names.delete(name);
  }

  async list(): Promise<readonly string[]> {
    return [...this.names];
  }
}

describe("auditedKeyStore", () => {
  it("tells of every change of a key, by whom, and of no secret", async () => {
    const audit = new AuditLines();
    const store = auditedKeyStore(fileKeyStore(file), audit, somebody);
    const { key, record } = await createKey(store, { ...anyPurpose, tenant: "blue" }, 5);
    const rotated = await rotateKey(store, key.id, 9);
    await limitKey(store, key.id, {});
    await revokeKey(store, key.id);
    expect(audit.lines.map((line) => line["action"])).toEqual([
      "key.create",
      "key.rotate",
      "key.update",
      "key.revoke",
    ]);
    for (const line of audit.lines)
      expect(line).toMatchObject({ subject: key.id, result: "OK", principal: "user:somebody" });
    expect(audit.lines[0]?.["details"]).toMatchObject({ name: "ci", tenant: "blue" });
    const text = JSON.stringify(audit.lines);
    for (const secret of [key.text.slice(-43), record.sha256, rotated.record.sha256])
      expect(text).not.toContain(secret);
  });

  it("tells of changes that could not be made", async () => {
    const audit = new AuditLines();
    const store = auditedKeyStore(fileKeyStore(file), audit, somebody);
    const { record } = await createKey(store, anyPurpose, 5);
    await store.replace({ ...record, name: "stale" }, undefined);
    rmSync(file);
    await expect(store.replace(record, undefined)).rejects.toThrow("ENOENT");
    expect(audit.lines.map((line) => [line["action"], line["result"]])).toEqual([
      ["key.create", "OK"],
      ["key.revoke", "UNAVAILABLE"],
      ["key.revoke", "INTERNAL"],
    ]);
  });
});

describe("auditedKvNamespace", () => {
  it("tells which keys the edge was told of, and of which it was not", async () => {
    const audit = new AuditLines();
    const namespace = new MemoryNamespace();
    const edge = auditedKvNamespace(namespace, audit, somebody);
    const { store } = publishedKeys(fileKeyStore(file), edge);
    const { key } = await createKey(store, anyPurpose, 5);
    await revokeKey(store, key.id);
    namespace.isAway = true;
    const other = await createKey(store, anyPurpose, 5);
    namespace.isAway = false;
    namespace.names.add("api-key:stale");
    await publishKeys(store, edge);
    expect(audit.lines.map((line) => [line["action"], line["result"], line["details"]])).toEqual([
      ["key.publish", "OK", { written: [key.id] }],
      ["key.publish", "OK", { removed: [key.id] }],
      ["key.publish", "INTERNAL", { written: [other.key.id] }],
      ["key.publish", "OK", { written: [other.key.id] }],
      ["key.publish", "OK", { removed: ["stale"] }],
    ]);
  });
});
