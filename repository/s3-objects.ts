import { addAbortSignal, Readable } from "node:stream";
import type * as sdkTypes from "@aws-sdk/client-s3";
import { type OpenedS3, openS3 } from "./s3-client.ts";
import type { S3BucketOptions } from "./s3-bucket.ts";
import { isMissing, s3Failure } from "./s3-error.ts";
import { type Attempt, retrying } from "./s3-retry.ts";

export interface S3ObjectsOptions extends S3BucketOptions {
  /** What all keys begin with: "" or a text that ends in "/". */
  readonly prefix: string;
}

/** A body that is sent says nothing of how far it is: it is given at least so long. */
const slowestBytesPerMillisecond = 1024;

/**
 * Large values in a bucket, each an object that is written whole and read whole. S3 knows no time to live: what nobody
 * removes is up to the bucket's lifecycle rule.
 */
export class S3Objects {
  readonly #options: S3ObjectsOptions;
  #opened: Promise<OpenedS3> | undefined;

  constructor(options: S3ObjectsOptions) {
    this.#options = options;
  }

  /** Resolves when S3 has all of it. */
  async put(key: string, bytes: Buffer): Promise<void> {
    const { patience } = this.#options;
    const sending = Math.ceil(bytes.byteLength / slowestBytesPerMillisecond);
    const stallMilliseconds = patience.stallMilliseconds + sending;
    await this.#send("written to", { ...patience, stallMilliseconds }, async (s3, signal) => {
      const command = new s3.sdk.PutObjectCommand({ ...this.#place(key), Body: bytes });
      await s3.client.send(command, { abortSignal: signal });
    });
  }

  /** Undefined when it is not there. The SDK compares it with its checksum. */
  get(key: string): Promise<Buffer | undefined> {
    return this.#send("read from", this.#options.patience, async (s3, signal, alive) => {
      const command = new s3.sdk.GetObjectCommand({
        ...this.#place(key),
        ChecksumMode: "ENABLED",
      });
      try {
        return await bodyOf(await s3.client.send(command, { abortSignal: signal }), signal, alive);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    });
  }

  /** Does nothing: the bucket decides how long it keeps what is not removed. */
  async keep(): Promise<void> {}

  /** Tries once: what is left is the bucket's. */
  async remove(...keys: readonly string[]): Promise<void> {
    await Promise.allSettled(keys.map((key) => this.#remove(key)));
  }

  async #remove(key: string): Promise<void> {
    const once = { ...this.#options.patience, attempts: 1 };
    await this.#send("removed from", once, async (s3, signal) => {
      const command = new s3.sdk.DeleteObjectCommand(this.#place(key));
      await s3.client.send(command, { abortSignal: signal });
    });
  }

  async #send<T>(
    what: string,
    patience: S3BucketOptions["patience"],
    attempt: (s3: OpenedS3, ...more: Parameters<Attempt<T>>) => Promise<T>,
  ): Promise<T> {
    try {
      const s3 = await (this.#opened ??= openS3(this.#options));
      return await retrying(patience, undefined, (...more) => attempt(s3, ...more));
    } catch (error) {
      throw s3Failure("large content of a job", error, what);
    }
  }

  /** Braces and colons are for Redis; S3's own tools stumble over them. */
  #place(key: string): { readonly Bucket: string; readonly Key: string } {
    const { bucket, prefix } = this.#options;
    return { Bucket: bucket, Key: prefix + key.replaceAll(/[{}]/gu, "").replaceAll(":", "/") };
  }
}

async function bodyOf(
  { Body: body }: sdkTypes.GetObjectCommandOutput,
  signal: AbortSignal,
  alive: () => void,
): Promise<Buffer> {
  if (!(body instanceof Readable)) throw new Error("S3 answered without a body");
  const chunks: Buffer[] = [];
  // The SDK forgets the signal when the answer begins.
  for await (const chunk of addAbortSignal(signal, body)) {
    alive();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
