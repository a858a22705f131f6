import { createHash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { mkdir, open, readdir, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import {
  type PartBody,
  partCount,
  partRange,
  type PartPlace,
  type UploadFile,
} from "../../protocol/upload.ts";
import { stagingFolder } from "../change-marks.ts";
import { unlessGone } from "../file-stamps.ts";
import { LocalStore } from "../local-store.ts";
import { publishFolder } from "./local-publish.ts";
import { LocalRecords } from "./local-records.ts";
import { makeView } from "./local-view.ts";
import { missingParts, otherContent } from "./refusals.ts";
import { fileOf, pathInModel, type UploadRecord } from "./upload-record.ts";
import type { StagedModel, StoredUpload, UploadStore } from "./upload-store.ts";

const partBytes = 8 * 1024 * 1024;

/**
 * Uploads to a directory of models: in a hidden folder of the same disk, from where a version moves to its place. Parts
 * are written to where they belong in their file; an empty file beside tells that one is whole.
 */
export class LocalUploads implements UploadStore {
  readonly store: LocalStore;
  readonly transfer = {
    kind: "direct",
    write: (record: UploadRecord, place: PartPlace, body: PartBody) =>
      told(this.#write(record, place, body)),
  } as const;
  readonly #root: string;
  readonly #configName: string | undefined;
  readonly #records: LocalRecords;

  /** @param configName as the store has it */
  constructor(root: string, configName?: string) {
    this.#root = resolve(root);
    this.#configName = configName;
    this.store = new LocalStore(root, configName);
    this.#records = new LocalRecords(join(root, stagingFolder));
  }

  partBytes(): number {
    return partBytes;
  }

  records(): Promise<readonly StoredUpload[]> {
    return told(this.#records.all());
  }

  find(id: string): Promise<StoredUpload | undefined> {
    return told(this.#records.find(id));
  }

  async create(record: UploadRecord): Promise<boolean> {
    await told(this.#checkRoom(record));
    return told(this.#records.create(record));
  }

  update(before: StoredUpload, next: UploadRecord): Promise<StoredUpload | undefined> {
    return told(this.#records.update(before, next));
  }

  async parts({ id, files }: UploadRecord): Promise<readonly (readonly number[])[]> {
    const names = (await told(unlessGone(readdir(this.#parts(id))))) ?? [];
    const found = names.map((name) => name.split(".").map(Number));
    return files.map((_, at) =>
      found.flatMap(([file, part = 0]) => (file === at ? [part] : [])).toSorted((a, b) => a - b),
    );
  }

  async seal(record: UploadRecord): Promise<void> {
    missingParts(record, await this.parts(record));
    const { id, model, version, files } = record;
    await told(mkdir(join(this.#staged(id), String(version)), { recursive: true }));
    for (const [at, file] of files.entries()) await told(this.#check(record, at, file));
    const shared = files.filter((file) => file.shared);
    const parts = { model: join(this.#root, model), staged: this.#staged(id), version, shared };
    await told(makeView(join(this.#view(id), model), parts));
  }

  async staged(record: UploadRecord): Promise<StagedModel> {
    const store = new LocalStore(this.#view(record.id), this.#configName);
    const model = await store.read(record.model);
    if (!model) throw new Error("the view of the upload is gone");
    return { model, store, changesShared: (await told(this.#changed(record))).length > 0 };
  }

  async publish(record: UploadRecord): Promise<void> {
    await told(
      publishFolder(record, {
        model: join(this.#root, record.model),
        staged: this.#staged(record.id),
        shared: await this.#changed(record),
      }),
    );
  }

  async remove({ id }: UploadRecord, what: "files" | "all"): Promise<void> {
    if (what === "all") return told(this.#records.remove(id));
    for (const folder of [this.#staged(id), this.#parts(id), this.#view(id)])
      await told(rm(folder, { recursive: true, force: true }));
  }

  tidy(before: number): Promise<void> {
    return told(this.#records.tidy(before));
  }

  async #write(record: UploadRecord, { file: at, part }: PartPlace, body: PartBody): Promise<void> {
    const file = fileOf(record, at);
    const [start, length] = partRange(file, record.partBytes, part);
    const mark = join(this.#parts(record.id), `${at}.${part}`);
    await rm(mark, { force: true });
    const target = join(this.#staged(record.id), pathInModel(record, file));
    await mkdir(dirname(target), { recursive: true });
    const handle = await open(target, constants.O_WRONLY | constants.O_CREAT);
    const hash = createHash("sha256");
    let come = 0;
    try {
      for await (const chunk of body.bytes) {
        if (come + chunk.length > length) throw otherLength(come + chunk.length, length);
        await writeAll(handle, chunk, start + come);
        hash.update(chunk);
        come += chunk.length;
      }
    } finally {
      await handle.close();
    }
    if (come !== length) throw otherLength(come, length);
    const digest = hash.digest("hex");
    if (body.sha256 !== undefined && digest !== body.sha256)
      throw invalidArgument(
        `part ${part} of ${JSON.stringify(file.name)}: its content has sha256 ${digest}, expected ${body.sha256}`,
      );
    await mkdir(dirname(mark), { recursive: true });
    await writeFile(mark, "");
  }

  /** Compares a file with what was said of it, and has it on disk for good. */
  async #check(record: UploadRecord, at: number, file: UploadFile): Promise<void> {
    const target = join(this.#staged(record.id), pathInModel(record, file));
    await mkdir(dirname(target), { recursive: true });
    const handle = await open(target, constants.O_RDWR | constants.O_CREAT);
    try {
      await handle.truncate(file.bytes);
      const digest = await digestOf(target);
      if (digest === file.sha256) return await handle.sync();
      for (let part = 0; part < partCount(file, record.partBytes); part++)
        await rm(join(this.#parts(record.id), `${at}.${part}`), { force: true });
      throw otherContent(file, digest);
    } finally {
      await handle.close();
    }
  }

  /** Files for all versions that are not in the model's folder, or as other ones. */
  async #changed({ model, files }: UploadRecord): Promise<readonly UploadFile[]> {
    const changed: UploadFile[] = [];
    for (const file of files.filter(({ shared }) => shared)) {
      const there = join(this.#root, model, file.name);
      const found = await unlessGone(stat(there));
      const same = found?.size === file.bytes && (await digestOf(there)) === file.sha256;
      if (!same) changed.push(file);
    }
    return changed;
  }

  /** Other uploads have been promised room, too. */
  async #checkRoom({ id, files }: UploadRecord): Promise<void> {
    await mkdir(join(this.#root, stagingFolder), { recursive: true });
    const { bavail, bsize } = await statfs(this.#root);
    const others = (await this.#records.all()).filter(
      ({ record }) => record.id !== id && record.state === "uploading",
    );
    let promised = sum(files);
    for (const { record } of others) promised += sum(record.files) - (await this.#come(record));
    if (promised <= bavail * bsize) return;
    throw noRoom(`given ${sum(files)} bytes, and those that other uploads wait for`);
  }

  async #come(record: UploadRecord): Promise<number> {
    const parts = await this.parts(record);
    return sum(
      record.files.flatMap((file, at) =>
        (parts[at] ?? []).map((part) => ({ bytes: partRange(file, record.partBytes, part)[1] })),
      ),
    );
  }

  #staged(id: string): string {
    return join(this.#records.folder(id), "files");
  }

  #parts(id: string): string {
    return join(this.#records.folder(id), "parts");
  }

  #view(id: string): string {
    return join(this.#records.folder(id), "view");
  }
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }))
    hash.update(chunk);
  return hash.digest("hex");
}

async function writeAll(
  handle: Awaited<ReturnType<typeof open>>,
  chunk: Uint8Array,
  start: number,
): Promise<void> {
  for (let done = 0; done < chunk.length;) {
    const { bytesWritten } = await handle.write(chunk, done, chunk.length - done, start + done);
    done += bytesWritten;
  }
}

function sum(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((total, { bytes }) => total + bytes, 0);
}

function otherLength(given: number, expected: number): InferenceError {
  return invalidArgument(`part: given ${given} bytes, expected ${expected}`);
}

function noRoom(given: string): InferenceError {
  return new InferenceError(
    StatusCode.Unavailable,
    `upload: ${given}, expected no more than the disk of the model repository has left`,
  );
}

/** File system errors carry paths: they become a text that has none. */
async function told<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (cause) {
    if (!(cause instanceof Error && "syscall" in cause && "code" in cause)) throw cause;
    if (cause.code === "ENOSPC" || cause.code === "EDQUOT") throw noRoom("the disk is full");
    const text = `upload: the model repository cannot be written (${String(cause.code)})`;
    throw new InferenceError(StatusCode.Internal, text, { cause });
  }
}
