import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import {
  partCount,
  partRange,
  type PartToSign,
  type SignedPart,
  type UploadFile,
} from "../../protocol/upload.ts";
import { hiddenMark, isMark, newModels, stagingFolder } from "../change-marks.ts";
import type { S3Object } from "../s3-bucket.ts";
import type { S3Transfer } from "../s3-download.ts";
import { s3ObjectFailure } from "../s3-error.ts";
import { type S3File, type S3Files, s3Files } from "../s3-files.ts";
import { retrying } from "../s3-retry.ts";
import type { S3Store } from "../s3-store.ts";
import type { PartToSend, S3Writer } from "../s3-writer.ts";
import { missingParts, otherContent, versionTaken } from "./refusals.ts";
import { publishMarks, publishObjects, type StagedObject } from "./s3-publish.ts";
import { S3Records } from "./s3-records.ts";
import { fileOf, isUploadId, pathInModel, type UploadRecord } from "./upload-record.ts";
import type { StagedModel, StoredUpload, UploadStore } from "./upload-store.ts";

export interface S3UploadsOptions {
  readonly store: S3Store;
  readonly transfer: S3Transfer;
  readonly writer: S3Writer;
  /** What the keys of all models begin with. */
  readonly prefix: string;
  /** @defaultValue 1000 */
  readonly settleMilliseconds?: number;
}

const smallestPartBytes = 8 * 2 ** 20;
/** S3 takes no more parts of one object. */
const mostParts = 10_000;
const maxObjects = 20_000;
/** Files that all versions share are read up to this size to see whether they change. */
const comparedBytes = 2 ** 20;
const settleMilliseconds = 1000;

/**
 * Uploads to a bucket of models: under a prefix that no list of models has, from where S3 copies them. Those who upload send
 * parts to S3 itself, by URLs that are good for exactly these bytes.
 */
export class S3Uploads implements UploadStore {
  readonly store: S3Store;
  readonly transfer = {
    kind: "signed",
    sign: (record: UploadRecord, parts: readonly PartToSign[]) => this.#sign(record, parts),
  } as const;
  readonly #options: S3UploadsOptions;
  readonly #staging: string;
  readonly #records: S3Records;

  constructor(options: S3UploadsOptions) {
    this.#options = options;
    this.store = options.store;
    this.#staging = `${options.prefix}${stagingFolder}/`;
    const { bucket, patience } = options.transfer;
    const { writer } = options;
    this.#records = new S3Records({ bucket, patience, writer, prefix: this.#staging });
  }

  partBytes(largestBytes: number): number {
    const megabytes = Math.ceil(largestBytes / mostParts / 2 ** 20);
    return Math.max(smallestPartBytes, megabytes * 2 ** 20);
  }

  records(): Promise<readonly StoredUpload[]> {
    return this.#records.all();
  }

  find(id: string): Promise<StoredUpload | undefined> {
    return this.#records.find(id);
  }

  async create(record: UploadRecord): Promise<boolean> {
    const { writer } = this.#options;
    if (await this.#records.find(record.id)) return false;
    const multipart: Record<number, string> = {};
    for (const [at, file] of record.files.entries())
      if (partCount(file, record.partBytes) > 1)
        multipart[at] = await writer.beginParts(this.#key(record, file), "SHA256");
    const whole = { ...record, multipart };
    if (await this.#records.create(whole)) return true;
    await this.#abort(whole);
    return false;
  }

  update(before: StoredUpload, next: UploadRecord): Promise<StoredUpload | undefined> {
    return this.#records.update(before, next);
  }

  async parts(record: UploadRecord): Promise<readonly (readonly number[])[]> {
    const there = new Map((await this.#uploaded(record)).map((file) => [file.path, file.object]));
    const { writer } = this.#options;
    return Promise.all(
      record.files.map(async (file, at) => {
        const all = Array.from({ length: partCount(file, record.partBytes) }, (_, part) => part);
        if (there.get(pathInModel(record, file))?.bytes === file.bytes) return all;
        const uploadId = record.multipart?.[at];
        if (uploadId === undefined) return [];
        const stored = await writer.parts(this.#key(record, file), uploadId);
        return stored
          .filter(({ number, bytes }) => bytes === partRange(file, record.partBytes, number - 1)[1])
          .map(({ number }) => number - 1);
      }),
    );
  }

  async seal(record: UploadRecord): Promise<void> {
    missingParts(record, await this.parts(record));
    const { writer } = this.#options;
    const there = new Set((await this.#uploaded(record)).map((file) => file.path));
    for (const [at, file] of record.files.entries()) {
      if (there.has(pathInModel(record, file))) continue;
      const key = this.#key(record, file);
      const uploadId = record.multipart?.[at];
      if (uploadId === undefined) await writer.put(key, "");
      else await writer.completeParts(key, uploadId, await writer.parts(key, uploadId));
    }
  }

  async staged(record: UploadRecord): Promise<StagedModel> {
    const { store } = this;
    const { model: name, version } = record;
    const [uploaded, existing = { files: [], stamps: [] }] = await Promise.all([
      this.#uploaded(record),
      store.listing(name),
    ]);
    const changed = await this.#changed(record, existing.files);
    const coming = uploaded.filter((file) => isOf(version, file) || changed.has(file.path));
    const view = overlaid(existing, coming, version);
    const model = await store.modelOf(name, view, (folder, fetched) =>
      verified(record, folder, fetched),
    );
    return { model, store, changesShared: changed.size > 0 };
  }

  async publish(record: UploadRecord, again: boolean): Promise<void> {
    const { writer, prefix, transfer, settleMilliseconds: settle } = this.#options;
    const folder = `${prefix}${record.model}/`;
    const subject = `model '${record.model}'`;
    const objects = await transfer.bucket.objects(subject, folder, maxObjects);
    const begun = objects.some(({ key }) => key === folder + hiddenMark(record.version));
    const inPlace = objects.some(({ key }) => key.startsWith(`${folder}${record.version}/`));
    const place = {
      writer,
      prefix,
      staging: this.#staging,
      settleMilliseconds: settle ?? settleMilliseconds,
    };
    if (inPlace && !begun) {
      if (!again) throw versionTaken(record);
      // All of it is there: only marks may be left.
      return writer.remove(publishMarks(record, place));
    }
    const { files } = s3Files(folder, objects);
    const [uploaded, changed] = [await this.#uploaded(record), await this.#changed(record, files)];
    const isNew = begun ? await this.#isNew(record) : files.every((file) => isMark(file.path));
    const ofVersion = uploaded.filter((file) => isOf(record.version, file));
    const shared = uploaded.filter((file) => changed.has(file.path));
    await publishObjects(record, { isNew, ofVersion, shared }, place);
  }

  async remove(record: UploadRecord, what: "files" | "all"): Promise<void> {
    await this.#abort(record);
    const uploaded = await this.#uploaded(record);
    await this.#options.writer.remove(uploaded.map(({ object }) => object.key));
    if (what === "all") await this.#records.remove(record.id);
  }

  async tidy(): Promise<void> {
    const { transfer, writer } = this.#options;
    const objects = await transfer.bucket.objects("upload", this.#staging, maxObjects);
    const idOf = ({ key }: S3Object): string => key.slice(this.#staging.length).split("/")[0] ?? "";
    const records = new Set(objects.filter(({ key }) => key.endsWith("/upload.json")).map(idOf));
    const lost = objects.filter((object) => isUploadId(idOf(object)) && !records.has(idOf(object)));
    await writer.remove(lost.map(({ key }) => key));
  }

  async #sign(record: UploadRecord, parts: readonly PartToSign[]): Promise<readonly SignedPart[]> {
    return Promise.all(
      parts.map(async ({ file: at, part, sha256 }) => {
        const file = fileOf(record, at);
        const uploadId = record.multipart?.[at];
        const digest = uploadId === undefined ? file.sha256 : sha256;
        const wanted: PartToSend = {
          key: this.#key(record, file),
          bytes: partRange(file, record.partBytes, part)[1],
          sha256: Buffer.from(digest, "hex").toString("base64"),
          ...(uploadId !== undefined && { of: { uploadId, number: part + 1 } }),
        };
        const [url, headers] = await this.#options.writer.sign(wanted);
        return { file: at, part, url, headers };
      }),
    );
  }

  /** True where an earlier call has begun to publish a model that was not there. */
  async #isNew({ model }: UploadRecord): Promise<boolean> {
    const mark = `${this.#staging}${newModels}/${model}`;
    const objects = await this.#options.transfer.bucket.objects("upload", mark, maxObjects);
    return objects.some(({ key }) => key === mark);
  }

  /** The objects that are whole. */
  async #uploaded({ id }: UploadRecord): Promise<readonly StagedObject[]> {
    const prefix = `${this.#staging}${id}/files/`;
    const objects = await this.#options.transfer.bucket.objects("upload", prefix, maxObjects);
    return s3Files(prefix, objects).files;
  }

  /** Paths of files for all versions that are not there, or are other ones. */
  async #changed(record: UploadRecord, there: readonly S3File[]): Promise<ReadonlySet<string>> {
    const changed = new Set<string>();
    for (const file of record.files.filter(({ shared }) => shared)) {
      const found = there.find((one) => one.path === file.name);
      if (!found || !(await this.#same(file, found.object))) changed.add(file.name);
    }
    return changed;
  }

  async #same(file: UploadFile, object: S3Object): Promise<boolean> {
    if (object.bytes !== file.bytes || file.bytes > comparedBytes) return false;
    const { bucket, patience } = this.#options.transfer;
    try {
      const content = await retrying(patience, undefined, async (signal) =>
        buffer((await bucket.get({ object }, signal)).stream),
      );
      return createHash("sha256").update(content).digest("hex") === file.sha256;
    } catch (error) {
      throw s3ObjectFailure("upload", error);
    }
  }

  async #abort({ files, multipart = {}, ...record }: UploadRecord): Promise<void> {
    for (const [at, uploadId] of Object.entries(multipart)) {
      const file = files[Number(at)];
      if (file) await this.#options.writer.abortParts(this.#key(record, file), uploadId);
    }
  }

  #key(record: Pick<UploadRecord, "id" | "version">, file: UploadFile): string {
    return `${this.#staging}${record.id}/files/${pathInModel(record, file)}`;
  }
}

function isOf(version: number, file: { readonly path: string }): boolean {
  return file.path.startsWith(`${version}/`);
}

/** A model's files with others in their place. */
function overlaid(existing: S3Files, coming: readonly S3File[], version: number): S3Files {
  const paths = new Set(coming.map((file) => file.path));
  const files = [...existing.files.filter((file) => !paths.has(file.path)), ...coming];
  // As one list of objects, so that folders are found as everywhere.
  const asListed = files.map(({ path: key, object }) => ({ ...object, key }));
  const { stamps } = s3Files("", [...asListed, { key: `${version}/`, bytes: 0, etag: "" }]);
  return { files, stamps };
}

/** Throws INVALID_ARG unless the files of an upload that were fetched with a version are those that were announced. */
async function verified(record: UploadRecord, folder: string, version: number): Promise<void> {
  for (const file of record.files) {
    if (!file.shared && version !== record.version) continue;
    const hash = createHash("sha256");
    const target = path.join(folder, pathInModel(record, file));
    for await (const chunk of createReadStream(target, { highWaterMark: 256 * 1024 }))
      hash.update(chunk);
    const digest = hash.digest("hex");
    if (digest !== file.sha256) throw otherContent(file, digest);
  }
}
