import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { S3Checksums } from "../../repository/s3-bucket.ts";
import { verifyFile } from "../../repository/s3-verify.ts";

const folder = mkdtempSync(path.join(tmpdir(), "tidepool-verify-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const content = Buffer.from("123456789".repeat(100_000));
const file = path.join(folder, "file");
writeFileSync(file, content);

const md5 = createHash("md5").update(content).digest("hex");
const sha256 = createHash("sha256").update(content).digest("base64");
const otherSum = createHash("sha256").update("other").digest("base64");

async function verify(etag: string, checksums: Partial<S3Checksums> = {}): Promise<string> {
  const handle = await open(file);
  try {
    const object = { key: "file", bytes: content.length, etag };
    await verifyFile(handle, object, { keyed: false, ...checksums });
    return "fits";
  } catch (error) {
    return error instanceof Error ? error.name : "";
  } finally {
    await handle.close();
  }
}

describe("verifyFile", () => {
  it("compares with the MD5 that a plain ETag is", async () => {
    expect(await verify(`"${md5}"`)).toBe("fits");
    expect(await verify(`"${"0".repeat(32)}"`)).toBe("ChecksumMismatch");
  });

  it("compares with no ETag that is none", async () => {
    expect(await verify(`"${"0".repeat(32)}-3"`)).toBe("fits");
    expect(await verify(`"${"0".repeat(32)}"`, { keyed: true })).toBe("fits");
  });

  it("prefers S3's checksums to the ETag", async () => {
    expect(await verify('"0-3"', { sha256 })).toBe("fits");
    expect(await verify(`"${md5}"`, { sha256: otherSum })).toBe("ChecksumMismatch");
    expect(await verify(`"${md5}"`, { crc32: "AAAAAA==" })).toBe("ChecksumMismatch");
  });

  it("knows the CRC-32 that the standard gives for its example", async () => {
    writeFileSync(file, "123456789");
    const handle = await open(file);
    const object = { key: "file", bytes: 9, etag: "" };
    const verified = verifyFile(handle, object, { keyed: false, crc32: "y/Q5Jg==" });
    await expect(verified).resolves.toBeUndefined();
    await handle.close();
    writeFileSync(file, content);
  });
});
