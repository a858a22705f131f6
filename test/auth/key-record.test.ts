import { describe, expect, it } from "vitest";
import { readKeyRecord } from "../../auth/key-record.ts";

const record = {
  id: "0123456789ab",
  name: "ci of team blue",
  tenant: "blue",
  scopes: ["infer"],
  models: ["bert*"],
  createdAt: 1,
  expiresAt: 2,
  sha256: "0".repeat(64),
  previous: { sha256: "1".repeat(64), expiresAt: 3 },
};

describe("readKeyRecord", () => {
  it("gives a record as it was written, without what it does not know", () => {
    expect(readKeyRecord(JSON.parse(JSON.stringify(record)))).toEqual(record);
    const { expiresAt: _, previous: __, ...least } = record;
    expect(readKeyRecord({ ...least, note: "x" })).toEqual(least);
  });

  it.each<[field: string, value: unknown, expected: string]>([
    ["id", "../../etc/pw", "expected 12 hexadecimal digits"],
    ["name", "", "expected 1 to 64 characters of ASCII"],
    ["name", "two\nlines", "expected 1 to 64 characters of ASCII"],
    ["tenant", "a b", "expected 1 to 64 letters"],
    ["scopes", ["everything"], "expected one of infer, read, models, admin"],
    ["scopes", [], "expected a list of 1 to 100"],
    ["scopes", "infer", "expected a list of 1 to 100"],
    ["models", ["a/b"], "expected 1 to 128 letters"],
    ["models", Array.from({ length: 101 }, () => "a"), "expected a list of 1 to 100"],
    ["createdAt", "now", "expected milliseconds since 1970"],
    ["expiresAt", -1, "expected milliseconds since 1970"],
    ["expiresAt", null, "expected milliseconds since 1970"],
    ["sha256", "zz", "expected 64 hexadecimal digits"],
    ["previous", { sha256: "1".repeat(64) }, "previous.expiresAt: given nothing"],
    ["previous", "none", "previous: given"],
  ])("refuses %s of %j", (field, value, expected) => {
    expect(() => readKeyRecord({ ...record, [field]: value })).toThrow(expected);
  });

  it.each([undefined, null, [], "x", 1])("refuses %j", (json) => {
    expect(() => readKeyRecord(json)).toThrow("expected the record of a key");
  });
});
