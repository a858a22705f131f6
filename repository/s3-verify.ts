import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import type { S3Checksums, S3Object } from "./s3-bucket.ts";
import { S3TransferError } from "./s3-error.ts";

/** Hashing one chunk blocks the event loop for less than a millisecond. */
const chunkBytes = 256 * 1024;
const md5Etag = /^"?(?<md5>[0-9a-f]{32})"?$/;

/**
 * Compares a file on disk with what S3 says of the object's content: its CRC-32, which costs least, or SHA-256, or the
 * MD5 that the ETag of an object is that was uploaded in one piece. Where S3 says nothing, the size was all there is.
 */
export async function verifyFile(
  file: FileHandle,
  object: S3Object,
  checksums: S3Checksums,
): Promise<void> {
  const wanted = expectedDigest(object, checksums);
  if (wanted === undefined) return;
  const digest = wanted.start();
  const chunk = Buffer.allocUnsafeSlow(Math.min(chunkBytes, object.bytes));
  for (let position = 0; position < object.bytes;) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) break;
    digest.update(chunk.subarray(0, bytesRead));
    position += bytesRead;
  }
  if (digest.value() === wanted.value) return;
  throw new S3TransferError("ChecksumMismatch", "the bytes are not those that S3 has a sum of");
}

interface Digest {
  update(bytes: Uint8Array): void;
  value(): string;
}

interface ExpectedDigest {
  readonly value: string;
  start(): Digest;
}

function expectedDigest(object: S3Object, checksums: S3Checksums): ExpectedDigest | undefined {
  if (checksums.crc32 !== undefined) return { value: checksums.crc32, start: crc32Digest };
  if (checksums.sha256 !== undefined)
    return { value: checksums.sha256, start: () => hashDigest("sha256", "base64") };
  const md5 = md5Etag.exec(object.etag)?.groups?.["md5"];
  if (md5 === undefined || checksums.keyed) return undefined;
  return { value: md5, start: () => hashDigest("md5", "hex") };
}

function crc32Digest(): Digest {
  let sum = 0;
  return {
    update: (bytes) => void (sum = crc32(bytes, sum)),
    value: () => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(sum);
      return bytes.toString("base64");
    },
  };
}

function hashDigest(algorithm: string, encoding: "base64" | "hex"): Digest {
  const hash = createHash(algorithm);
  return { update: (bytes) => void hash.update(bytes), value: () => hash.digest(encoding) };
}
