import { addAbortSignal, Readable } from "node:stream";
import type * as sdkTypes from "@aws-sdk/client-s3";
import { invalidArgument } from "../protocol/error.ts";
import { type OpenedS3, openS3, type S3ClientOptions } from "./s3-client.ts";
import { S3TransferError, s3Failure } from "./s3-error.ts";
import { retrying, type S3Patience } from "./s3-retry.ts";

export interface S3BucketOptions extends S3ClientOptions {
  readonly bucket: string;
  readonly patience: S3Patience;
}

/** An object as a listing tells of it. */
export interface S3Object {
  readonly key: string;
  readonly bytes: number;
  /** As S3 gives it, quotes included. */
  readonly etag: string;
}

/** What S3 says about the content of a whole object; all of it may be absent. */
export interface S3Checksums {
  /** Base64. */
  readonly crc32?: string | undefined;
  /** Base64. */
  readonly sha256?: string | undefined;
  /** Encrypted with a key of S3's key store: then the ETag is no MD5. */
  readonly keyed: boolean;
}

export interface S3Body {
  readonly stream: Readable;
  readonly checksums: S3Checksums;
}

/** A part of one object: all of it without a range. */
export interface S3Part {
  readonly object: S3Object;
  /** First byte and number of bytes. */
  readonly range?: readonly [start: number, length: number];
}

const maxPages = 1000;

/**
 * One bucket of S3, read only: listings, objects and their checksums.
 */
export class S3Bucket {
  readonly #options: S3BucketOptions;
  #opened: Promise<OpenedS3> | undefined;

  constructor(options: S3BucketOptions) {
    this.#options = options;
  }

  /** Names of the folders directly below a prefix. */
  async folders(subject: string, prefix: string): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const { folders } of this.#pages(subject, prefix, "/"))
      for (const folder of folders) names.push(folder.slice(prefix.length, -1));
    return names;
  }

  /** All objects below a prefix, in the order of their keys; throws when they are more than so many. */
  async objects(subject: string, prefix: string, most: number): Promise<readonly S3Object[]> {
    const found: S3Object[] = [];
    for await (const { objects } of this.#pages(subject, prefix)) {
      found.push(...objects);
      if (found.length > most)
        throw invalidArgument(`${subject}: given more, expected at most ${most} objects`);
    }
    return found;
  }

  /** Opens what was listed; fails when the object is another one by now. One try. */
  async get({ object, range }: S3Part, signal: AbortSignal): Promise<S3Body> {
    const { sdk, client } = await this.#open();
    const command = new sdk.GetObjectCommand({
      Bucket: this.#options.bucket,
      Key: object.key,
      IfMatch: object.etag,
      ChecksumMode: "ENABLED",
      ...(range && { Range: `bytes=${range[0]}-${range[0] + range[1] - 1}` }),
    });
    const answer = await client.send(command, { abortSignal: signal });
    if (!(answer.Body instanceof Readable)) throw new Error("S3 answered without a body");
    if (answer.ETag !== object.etag) {
      answer.Body.destroy();
      throw new S3TransferError("Changed", "the answer is of another state of the object");
    }
    // The SDK forgets the signal when the answer begins.
    return { stream: addAbortSignal(signal, answer.Body), checksums: checksumsOf(answer) };
  }

  /** Asks for the checksums alone. One try. */
  async checksums(object: S3Object, signal: AbortSignal): Promise<S3Checksums> {
    const { sdk, client } = await this.#open();
    const command = new sdk.HeadObjectCommand({
      Bucket: this.#options.bucket,
      Key: object.key,
      IfMatch: object.etag,
      ChecksumMode: "ENABLED",
    });
    return checksumsOf(await client.send(command, { abortSignal: signal }));
  }

  async *#pages(subject: string, prefix: string, delimiter?: string): AsyncGenerator<Page> {
    let token: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const found = await this.#page(subject, prefix, delimiter, token);
      yield found;
      token = found.next;
      if (token === undefined) return;
    }
    throw invalidArgument(`${subject}: given more, expected at most ${maxPages} pages of names`);
  }

  async #page(
    subject: string,
    prefix: string,
    delimiter: string | undefined,
    token: string | undefined,
  ): Promise<Page> {
    const { bucket, patience } = this.#options;
    try {
      const { sdk, client } = await this.#open();
      const command = new sdk.ListObjectsV2Command({
        Bucket: bucket,
        Prefix: prefix,
        Delimiter: delimiter,
        ContinuationToken: token,
      });
      const answer = await retrying(patience, undefined, (signal) =>
        client.send(command, { abortSignal: signal }),
      );
      return {
        folders: (answer.CommonPrefixes ?? []).map((folder) => folder.Prefix ?? ""),
        objects: (answer.Contents ?? []).map((object) => ({
          key: object.Key ?? "",
          bytes: object.Size ?? 0,
          etag: object.ETag ?? "",
        })),
        next: answer.IsTruncated ? answer.NextContinuationToken : undefined,
      };
    } catch (error) {
      throw s3Failure(subject, error);
    }
  }

  #open(): Promise<OpenedS3> {
    return (this.#opened ??= openS3(this.#options));
  }
}

interface Page {
  readonly folders: readonly string[];
  readonly objects: readonly S3Object[];
  readonly next: string | undefined;
}

function checksumsOf(
  answer: sdkTypes.GetObjectCommandOutput | sdkTypes.HeadObjectCommandOutput,
): S3Checksums {
  const keyed =
    answer.ServerSideEncryption?.startsWith("aws:") === true ||
    answer.SSECustomerAlgorithm !== undefined;
  // The checksum of a composite is one of its parts' checksums.
  if (answer.ChecksumType === "COMPOSITE") return { keyed };
  return { crc32: answer.ChecksumCRC32, sha256: answer.ChecksumSHA256, keyed };
}
