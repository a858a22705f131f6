import { readdirSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changeMark } from "../../../repository/change-marks.ts";
import { LocalStore } from "../../../repository/local-store.ts";
import { LocalUploads } from "../../../repository/uploads/local-uploads.ts";
import { ModelDirectory } from "../../helpers/model-directory.ts";
import { sendAll, sendPart, sha256, uploadRecord } from "../../helpers/upload-parts.ts";
import { describeUploadStore } from "./upload-store-cases.ts";

describeUploadStore("LocalUploads", () => {
  const models = new ModelDirectory();
  return Promise.resolve({
    uploads: new LocalUploads(models.path),
    put: async (path: string, content: string) => models.write(path, content),
    reader: () => new LocalStore(models.path),
    leftovers: async () =>
      readdirSync(models.path, { recursive: true, encoding: "utf8" }).filter(
        (name) => name !== ".tidepool-uploads",
      ),
    stop: async () => models.remove(),
  });
});

async function* bytes(...pieces: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

describe("LocalUploads of a directory", () => {
  let models: ModelDirectory;
  let uploads: LocalUploads;
  beforeEach(() => {
    models = new ModelDirectory();
    uploads = new LocalUploads(models.path);
  });
  afterEach(() => models.remove());

  it("refuses a part of another length, or of other content than its sender says", async () => {
    const record = uploadRecord(1, { x: "12345" });
    await uploads.create(record);
    const { write } = uploads.transfer;
    const at = { file: 0, part: 0 };
    for (const [pieces, text] of [
      [["123"], "given 3 bytes, expected 5"],
      [["123", "456"], "given 6 bytes, expected 5"],
    ] as const) {
      const part = write(record, at, { bytes: bytes(...pieces), sha256: undefined });
      await expect(part).rejects.toThrow(text);
    }
    const said = sha256(Buffer.from("12345"));
    const other = write(record, at, { bytes: bytes("1234X"), sha256: said });
    await expect(other).rejects.toThrow(`expected ${said}`);
    expect(await uploads.parts(record)).toEqual([[]]);
  });

  it("forgets that a part was there while it comes again", async () => {
    const record = uploadRecord(1, { x: "12345" });
    await uploads.create(record);
    await sendPart(uploads, record, { file: 0, part: 0 }, "12345");
    const broken = uploads.transfer.write(
      record,
      { file: 0, part: 0 },
      { bytes: bytes("9"), sha256: undefined },
    );
    await expect(broken).rejects.toThrow("given 1 bytes");
    expect(await uploads.parts(record)).toEqual([[]]);
  });

  it("wants the parts of a file again whose content is not what was announced", async () => {
    const record = uploadRecord(1, { x: "good", y: "fine" });
    await uploads.create(record);
    await sendAll(uploads, record, { x: "evil", y: "fine" });
    await expect(uploads.seal(record)).rejects.toThrow('file "x"');
    expect(await uploads.parts(record)).toEqual([[], [0]]);
  });

  it("goes on with an exchange of files that was interrupted, which readers wait for", async () => {
    models.write("m/config.pbtxt", "old");
    const contents = { "/config.pbtxt": "new", "model.onnx": "one" };
    const record = uploadRecord(1, contents);
    await uploads.create(record);
    await sendAll(uploads, record, contents);
    await uploads.seal(record);
    // As it is left by a process that dies between two files.
    const mark = join(models.path, "m", changeMark(record.id));
    await writeFile(mark, "");
    const staged = join(models.path, ".tidepool-uploads", record.id, "files/1");
    await rename(staged, join(models.path, "m/1"));
    let seen: unknown;
    const reading = uploads.store.read("m").then((model) => (seen = model?.config?.text));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(seen).toBeUndefined();
    await uploads.publish(record);
    await reading;
    expect(seen).toBe("new");
  });

  it("keeps readers waiting when an exchange of files fails halfway, until it is finished", async () => {
    models.write("m/config.pbtxt", "old");
    models.write("m/labels.txt/in-the-way", "");
    const contents = { "/config.pbtxt": "new", "/labels.txt": "labels", "model.onnx": "one" };
    const record = uploadRecord(1, contents);
    await uploads.create(record);
    await sendAll(uploads, record, contents);
    await uploads.seal({
      ...record,
      files: record.files.filter(({ name }) => name !== "labels.txt"),
    });
    await expect(uploads.publish(record)).rejects.toThrow("cannot be written (EISDIR)");
    let seen: unknown;
    const reading = uploads.store.read("m").then((model) => (seen = model?.config?.text));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(seen).toBeUndefined();
    models.remove("m/labels.txt");
    await uploads.publish(record);
    await reading;
    expect(seen).toBe("new");
  });

  it("exchanges many files between two looks of those who read all the time", async () => {
    const names = Array.from({ length: 200 }, (_, at) => `/shared-${at}`);
    for (const name of names) models.write(`m${name}`, "old");
    const contents = Object.fromEntries(names.map((name) => [name, "newer"]));
    const record = uploadRecord(1, contents);
    await uploads.create(record);
    await sendAll(uploads, record, contents);
    await uploads.seal(record);
    const seen = new Set([(await uploads.store.read("m"))?.fingerprint]);
    const published = new AbortController();
    const watch = async (): Promise<void> => {
      while (!published.signal.aborted) seen.add((await uploads.store.read("m"))?.fingerprint);
    };
    const watching = Promise.all([watch(), watch(), watch()]);
    await uploads.publish(record).finally(() => published.abort());
    await watching;
    seen.add((await uploads.store.read("m"))?.fingerprint);
    expect(seen.size).toBe(2);
  });

  it("refuses what the disk has no room for, other uploads counted", async () => {
    const huge = { name: "x", bytes: 2 ** 52, sha256: "0".repeat(64), shared: false };
    const record = { ...uploadRecord(1, {}), files: [huge] };
    await expect(uploads.create(record)).rejects.toThrow("no more than the disk");
    await rm(join(models.path, ".tidepool-uploads"), { recursive: true });
  });
});
