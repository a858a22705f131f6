import { text } from "node:stream/consumers";
import type { S3Bucket, S3Object } from "../s3-bucket.ts";
import { s3ObjectFailure } from "../s3-error.ts";
import { retrying, type S3Patience } from "../s3-retry.ts";
import { Slots } from "../slots.ts";
import type { S3Writer } from "../s3-writer.ts";
import { isUploadId, parseRecord, type UploadRecord } from "./upload-record.ts";
import type { StoredUpload } from "./upload-store.ts";

export interface S3RecordsOptions {
  readonly bucket: S3Bucket;
  readonly writer: S3Writer;
  readonly patience: S3Patience;
  /** What the keys of all uploads begin with. */
  readonly prefix: string;
}

const maxObjects = 10;
const readsAtOnce = 16;
const subject = "upload";

/** The records of uploads in a bucket; a record is written only over the state that its writer has read. */
export class S3Records {
  readonly #options: S3RecordsOptions;

  constructor(options: S3RecordsOptions) {
    this.#options = options;
  }

  async all(): Promise<readonly StoredUpload[]> {
    const { bucket, prefix } = this.#options;
    const ids = (await bucket.folders(subject, prefix)).filter(isUploadId);
    const slots = new Slots(readsAtOnce);
    const found = await Promise.all(ids.map((id) => slots.run(() => this.find(id))));
    return found.filter((one): one is StoredUpload => one !== undefined);
  }

  async find(id: string): Promise<StoredUpload | undefined> {
    const { bucket } = this.#options;
    const key = this.#key(id);
    const objects = await bucket.objects(subject, key, maxObjects);
    const object = objects.find((one) => one.key === key);
    return object && { record: await this.#read(object), tag: object.etag };
  }

  async create(record: UploadRecord): Promise<boolean> {
    const { writer } = this.#options;
    const tag = await writer.put(this.#key(record.id), JSON.stringify(record), { ifNew: true });
    return tag !== undefined;
  }

  async update(before: StoredUpload, record: UploadRecord): Promise<StoredUpload | undefined> {
    const { writer } = this.#options;
    const only = { ifTag: before.tag };
    const tag = await writer.put(this.#key(record.id), JSON.stringify(record), only);
    return tag === undefined ? undefined : { record, tag };
  }

  remove(id: string): Promise<void> {
    return this.#options.writer.remove([this.#key(id)]);
  }

  #key(id: string): string {
    return `${this.#options.prefix}${id}/upload.json`;
  }

  async #read(object: S3Object): Promise<UploadRecord> {
    const { bucket, patience } = this.#options;
    try {
      return await retrying(patience, undefined, async (signal) =>
        parseRecord(await text((await bucket.get({ object }, signal)).stream)),
      );
    } catch (error) {
      throw s3ObjectFailure(subject, error);
    }
  }
}
