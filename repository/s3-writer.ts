import type * as sdkTypes from "@aws-sdk/client-s3";
import type { S3BucketOptions, S3Object } from "./s3-bucket.ts";
import { type OpenedS3, openS3 } from "./s3-client.ts";
import { isPrecondition, s3Failure } from "./s3-error.ts";
import { retrying } from "./s3-retry.ts";

/** A part of an object that is uploaded in parts. */
export interface StoredPart {
  /** From 1, as S3 counts. */
  readonly number: number;
  readonly bytes: number;
  readonly etag: string;
  /** Base64, by the name of the algorithm. */
  readonly checksum: Readonly<Partial<Record<"ChecksumSHA256" | "ChecksumCRC32", string>>>;
}

/** What is to be sent to S3 by somebody else. */
export interface PartToSend {
  readonly key: string;
  readonly bytes: number;
  /** Base64. */
  readonly sha256: string;
  /** Absent for an object that is sent as a whole. */
  readonly of?: { readonly uploadId: string; readonly number: number };
}

/** A precondition of a write. */
export type WriteOnly = { readonly ifNew: true } | { readonly ifTag: string };

/** How long a signed URL can be used. */
const signedSeconds = 3600;
/** S3 copies no more in one request, and parts side by side are quicker. */
const copyPartBytes = 512 * 2 ** 20;
/** Large objects are copied at about so many bytes a millisecond, or better. */
const slowestCopyBytesPerMillisecond = 10_000;
const checksumHeader = "x-amz-checksum-sha256";

/** One bucket of S3 as somebody writes it who publishes models there. */
export class S3Writer {
  readonly #options: S3BucketOptions;
  readonly #copyPartBytes: number;
  #opened: Promise<OpenedS3> | undefined;

  constructor(options: S3BucketOptions, limits = { copyPartBytes }) {
    this.#options = options;
    this.#copyPartBytes = limits.copyPartBytes;
  }

  /** @returns the ETag; undefined where the precondition does not hold */
  async put(key: string, text: string, only?: WriteOnly): Promise<string | undefined> {
    const Body = Buffer.from(text);
    try {
      const { ETag } = await this.#send(({ client, sdk }, signal) =>
        client.send(
          new sdk.PutObjectCommand({
            ...this.#place(key),
            Body,
            ContentLength: Body.length,
            ...(only && ("ifNew" in only ? { IfNoneMatch: "*" } : { IfMatch: only.ifTag })),
          }),
          { abortSignal: signal },
        ),
      );
      return ETag;
    } catch (error) {
      if (only && isPrecondition(error)) return undefined;
      throw failure(error);
    }
  }

  /** Copies one state of an object within the bucket. */
  async copy(from: S3Object, key: string): Promise<void> {
    const source = { CopySource: this.#source(from.key), CopySourceIfMatch: from.etag };
    try {
      if (from.bytes > this.#copyPartBytes) return await this.#copyInParts(from, key, source);
      await this.#send(
        ({ client, sdk }, signal) =>
          client.send(new sdk.CopyObjectCommand({ ...this.#place(key), ...source }), {
            abortSignal: signal,
          }),
        from.bytes,
      );
    } catch (error) {
      throw failure(error);
    }
  }

  /** Does not mind when they are not there. */
  async remove(keys: readonly string[]): Promise<void> {
    try {
      for (const key of keys)
        await this.#send(({ client, sdk }, signal) =>
          client.send(new sdk.DeleteObjectCommand(this.#place(key)), { abortSignal: signal }),
        );
    } catch (error) {
      throw failure(error);
    }
  }

  /**
   * @param checksum that S3 keeps: of each part, or for all of it where that can be had from parts
   * @returns S3's name for the upload
   */
  async beginParts(key: string, checksum: "SHA256" | "CRC32"): Promise<string> {
    try {
      const { UploadId = "" } = await this.#send(({ client, sdk }, signal) =>
        client.send(
          new sdk.CreateMultipartUploadCommand({
            ...this.#place(key),
            ChecksumAlgorithm: checksum,
            ChecksumType: checksum === "CRC32" ? "FULL_OBJECT" : "COMPOSITE",
          }),
          { abortSignal: signal },
        ),
      );
      return UploadId;
    } catch (error) {
      throw failure(error);
    }
  }

  async parts(key: string, uploadId: string): Promise<readonly StoredPart[]> {
    const found: StoredPart[] = [];
    try {
      for (let marker: string | undefined = "0"; marker !== undefined;) {
        const page: sdkTypes.ListPartsCommandOutput = await this.#send(({ client, sdk }, signal) =>
          client.send(
            new sdk.ListPartsCommand({
              ...this.#place(key),
              UploadId: uploadId,
              PartNumberMarker: marker,
            }),
            { abortSignal: signal },
          ),
        );
        for (const { PartNumber = 0, Size = 0, ETag = "", ChecksumSHA256 } of page.Parts ?? [])
          found.push({
            number: PartNumber,
            bytes: Size,
            etag: ETag,
            checksum: ChecksumSHA256 === undefined ? {} : { ChecksumSHA256 },
          });
        marker = page.IsTruncated ? page.NextPartNumberMarker : undefined;
      }
      return found;
    } catch (error) {
      throw failure(error);
    }
  }

  async completeParts(key: string, uploadId: string, parts: readonly StoredPart[]): Promise<void> {
    const Parts = parts.map(({ number, etag, checksum }) => ({
      PartNumber: number,
      ETag: etag,
      ...checksum,
    }));
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    try {
      await this.#send(
        ({ client, sdk }, signal) =>
          client.send(
            new sdk.CompleteMultipartUploadCommand({
              ...this.#place(key),
              UploadId: uploadId,
              MultipartUpload: { Parts },
            }),
            { abortSignal: signal },
          ),
        bytes,
      );
    } catch (error) {
      throw failure(error);
    }
  }

  /** Tries once: what is left is up to a lifecycle rule of the bucket. */
  async abortParts(key: string, uploadId: string): Promise<void> {
    const { client, sdk } = await this.#open();
    const command = new sdk.AbortMultipartUploadCommand({
      ...this.#place(key),
      UploadId: uploadId,
    });
    await client.send(command).catch(() => {});
  }

  /** A URL by which exactly these bytes can be sent, and the headers that have to be sent with them. */
  async sign(part: PartToSend): Promise<[url: string, headers: Readonly<Record<string, string>>]> {
    const { client, sdk } = await this.#open();
    const { getSignedUrl } = await import("@aws-sdk/s3-request-presigner");
    const sent = {
      ...this.#place(part.key),
      ContentLength: part.bytes,
      ChecksumSHA256: part.sha256,
    };
    const options = {
      expiresIn: signedSeconds,
      unhoistableHeaders: new Set([checksumHeader]),
      signableHeaders: new Set(["host", "content-length"]),
    };
    const headers = { [checksumHeader]: part.sha256, "content-length": String(part.bytes) };
    try {
      if (!part.of) {
        const whole = new sdk.PutObjectCommand(sent);
        return [await getSignedUrl(client, whole, options), headers];
      }
      const { uploadId, number } = part.of;
      const piece = new sdk.UploadPartCommand({ ...sent, UploadId: uploadId, PartNumber: number });
      return [await getSignedUrl(client, piece, options), headers];
    } catch (error) {
      throw failure(error);
    }
  }

  async #copyInParts(
    from: S3Object,
    key: string,
    source: { readonly CopySource: string; readonly CopySourceIfMatch: string },
  ): Promise<void> {
    const uploadId = await this.beginParts(key, "CRC32");
    try {
      const parts: StoredPart[] = [];
      for (let start = 0; start < from.bytes; start += this.#copyPartBytes) {
        const bytes = Math.min(this.#copyPartBytes, from.bytes - start);
        const number = parts.length + 1;
        const { CopyPartResult: result } = await this.#send(
          ({ client, sdk }, signal) =>
            client.send(
              new sdk.UploadPartCopyCommand({
                ...this.#place(key),
                ...source,
                UploadId: uploadId,
                PartNumber: number,
                CopySourceRange: `bytes=${start}-${start + bytes - 1}`,
              }),
              { abortSignal: signal },
            ),
          bytes,
        );
        const { ETag = "", ChecksumCRC32 } = result ?? {};
        const checksum = ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 };
        parts.push({ number, bytes, etag: ETag, checksum });
      }
      await this.completeParts(key, uploadId, parts);
    } catch (error) {
      await this.abortParts(key, uploadId);
      throw error;
    }
  }

  /** @param bytes that S3 moves before it answers */
  async #send<T>(
    attempt: (s3: OpenedS3, signal: AbortSignal) => Promise<T>,
    bytes = 0,
  ): Promise<T> {
    const { patience } = this.#options;
    const moving = Math.ceil(bytes / slowestCopyBytesPerMillisecond);
    const stallMilliseconds = patience.stallMilliseconds + moving;
    const s3 = await this.#open();
    return retrying({ ...patience, stallMilliseconds }, undefined, (signal) => attempt(s3, signal));
  }

  #open(): Promise<OpenedS3> {
    return (this.#opened ??= openS3(this.#options));
  }

  #place(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#options.bucket, Key: key };
  }

  /** Goes in a header, where the slashes between folders stay. */
  #source(key: string): string {
    return encodeURIComponent(`${this.#options.bucket}/${key}`).replaceAll("%2F", "/");
  }
}

function failure(cause: unknown): Error {
  return s3Failure("upload", cause, "written to");
}
