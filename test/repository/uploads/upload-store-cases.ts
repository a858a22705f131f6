import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ModelStore, StoredModel } from "../../../repository/model-store.ts";
import type { UploadRecord } from "../../../repository/uploads/upload-record.ts";
import type { StoredUpload, UploadStore } from "../../../repository/uploads/upload-store.ts";
import { type Contents, sendAll, sendPart, uploadRecord } from "../../helpers/upload-parts.ts";

/** A place of models, and how a test puts something there past the uploads. */
export interface UploadStand {
  readonly uploads: UploadStore;
  put(path: string, content: string): Promise<void>;
  /** Another process that reads the same place. */
  reader(): ModelStore;
  /** Names of all that lies in the place, but for what was put. */
  leftovers(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

const config = 'backend: "onnxruntime"\n';
const large = Buffer.alloc(11 * 2 ** 20, "large");

/** What every place of uploads does. */
export function describeUploadStore(name: string, start: () => Promise<UploadStand>): void {
  describe(`${name}, as a store of uploads`, () => {
    let stand: UploadStand;
    let uploads: UploadStore;
    beforeEach(async () => {
      stand = await start();
      ({ uploads } = stand);
    });
    afterEach(() => stand.stop());

    async function begin(
      version: number,
      contents: Contents,
      more: Partial<UploadRecord> = {},
    ): Promise<UploadRecord> {
      const record = uploadRecord(version, contents, more);
      expect(await uploads.create(record)).toBe(true);
      return found(record.id).then((stored) => stored.record);
    }

    async function found(id: string): Promise<StoredUpload> {
      const stored = await uploads.find(id);
      if (!stored) throw new Error("no such upload");
      return stored;
    }

    async function pushed(version: number, contents: Contents): Promise<UploadRecord> {
      const record = await begin(version, contents);
      await sendAll(uploads, record, contents);
      await uploads.seal(record);
      return record;
    }

    async function read(store: ModelStore = stand.reader()): Promise<StoredModel> {
      const model = await store.read("m");
      if (!model) throw new Error("no model 'm'");
      return model;
    }

    async function contentOf(version: number, file: string): Promise<string> {
      const store = stand.reader();
      const files = await store.fetch(await read(store), version);
      const text = await readFile(join(files.modelDirectory, file), "utf8");
      await files.release();
      return text;
    }

    it("shows nothing of a version before it is published, and then all of it", async () => {
      await stand.put("m/config.pbtxt", config);
      await stand.put("m/1/model.onnx", "one");
      const before = await read();
      const record = await pushed(2, { "model.onnx": "two", "more/weights.bin": large });
      expect(await read()).toEqual(before);
      expect(await stand.reader().list()).toEqual(["m"]);
      await uploads.publish(record, false);
      expect((await read()).versions.map(({ version }) => version)).toEqual([1, 2]);
      expect(await contentOf(2, "2/more/weights.bin")).toBe(large.toString());
    });

    it("shows a model as it will be to whoever opens it", async () => {
      await stand.put("m/config.pbtxt", config);
      await stand.put("m/labels.txt", "old");
      await stand.put("m/1/model.onnx", "one");
      const record = await pushed(2, { "model.onnx": "two", "/labels.txt": "new" });
      const { model, store, changesShared } = await uploads.staged(record);
      expect(model.config?.text).toBe(config);
      expect(model.versions.map(({ version }) => version)).toEqual([1, 2]);
      expect(changesShared).toBe(true);
      const files = await store.fetch(model, 2);
      expect(await readFile(join(files.modelDirectory, "labels.txt"), "utf8")).toBe("new");
      expect(await readFile(join(files.versionDirectory, "model.onnx"), "utf8")).toBe("two");
      await files.release();
      expect(await contentOf(1, "labels.txt")).toBe("old");
    });

    it("publishes a model that was not there, whose name no list has before all of it is there", async () => {
      const record = await pushed(7, { "model.onnx": "seven", "/config.pbtxt": config });
      const reader = stand.reader();
      const published = new AbortController();
      const seen = new Set<string>();
      const watching = (async () => {
        while (!published.signal.aborted || seen.size === 0) {
          if (!(await reader.list()).includes("m")) continue;
          const model = await read(reader);
          const versions = model.versions.map((one) => [one.version, ...one.files]);
          seen.add(JSON.stringify([versions, model.config?.text]));
        }
      })();
      await uploads.publish(record, false).finally(() => published.abort());
      await watching;
      expect([...seen]).toEqual([JSON.stringify([[[7, "model.onnx"]], config])]);
    });

    it("publishes a version without files of its own, as ensembles have", async () => {
      const record = await pushed(1, { "/config.pbtxt": 'platform: "ensemble"\n' });
      await uploads.publish(record, false);
      expect((await read()).versions.map(({ version }) => version)).toEqual([1]);
    });

    it("leaves files alone that all versions share and that stay the same", async () => {
      await stand.put("m/config.pbtxt", config);
      await stand.put("m/1/model.onnx", "one");
      const before = (await read()).versions[0]?.fingerprint;
      const record = await pushed(2, { "model.onnx": "two", "/config.pbtxt": config });
      expect((await uploads.staged(record)).changesShared).toBe(false);
      await uploads.publish(record, false);
      expect((await read()).versions[0]?.fingerprint).toBe(before);
    });

    it("never shows a new config without its version, nor the version without it", async () => {
      await stand.put("m/config.pbtxt", "old");
      await stand.put("m/1/model.onnx", "one");
      const record = await pushed(2, { "/config.pbtxt": "new", "model.onnx": "two", b: large });
      const seen = new Set<string>();
      const published = new AbortController();
      const reader = stand.reader();
      const look = async (): Promise<void> => {
        const model = await read(reader);
        const files = model.versions.map(({ version, files: own }) => [version, ...own]);
        seen.add(JSON.stringify([model.config?.text, files]));
      };
      await look();
      const watching = (async () => {
        while (!published.signal.aborted) await look();
      })();
      await uploads.publish(record, false).finally(() => published.abort());
      await watching;
      await look();
      const [one, two] = [
        ["old", [[1, "model.onnx"]]],
        [
          "new",
          [
            [1, "model.onnx"],
            [2, "b", "model.onnx"],
          ],
        ],
      ];
      expect([...seen]).toEqual([JSON.stringify(one), JSON.stringify(two)]);
    });

    it("tells which parts are there, and takes the others later", async () => {
      const contents = { "model.onnx": large, small: "s", empty: "" };
      const record = await begin(1, contents);
      expect(await uploads.parts(record)).toEqual([[], [], []]);
      await sendPart(uploads, record, { file: 0, part: 1 }, large);
      await sendPart(uploads, record, { file: 1, part: 0 }, "s");
      expect(await uploads.parts(record)).toEqual([[1], [0], []]);
      await expect(uploads.seal(record)).rejects.toThrow("given 2 of 4 parts, expected all of");
      await sendPart(uploads, record, { file: 0, part: 2 }, large);
      await sendPart(uploads, record, { file: 0, part: 0 }, large);
      expect(await uploads.parts(record)).toEqual([[0, 1, 2], [0], []]);
      await uploads.seal(record);
      await uploads.publish(record, false);
      expect(await contentOf(1, "1/model.onnx")).toBe(large.toString());
      expect(await contentOf(1, "1/empty")).toBe("");
    });

    it("refuses to open what is not what was announced", async () => {
      const announced = { "model.onnx": large };
      const record = await begin(1, announced);
      const other = Buffer.from(large);
      other[5] = 0;
      await sendAll(uploads, record, { "model.onnx": other });
      const opened = (async () => {
        await uploads.seal(record);
        const { store, model } = await uploads.staged(record);
        await store.fetch(model, 1);
      })();
      await expect(opened).rejects.toThrow(
        /file "model.onnx": its content has sha256 \w+, expected/u,
      );
    });

    it("has one upload of a version, whoever begins", async () => {
      const records = ["a", "b", "c", "d"].map((by) => uploadRecord(1, { x: by }, { by }));
      const began = await Promise.all(records.map((record) => uploads.create(record)));
      expect(began.filter(Boolean)).toHaveLength(1);
      const { by } = records[began.indexOf(true)] ?? {};
      expect((await uploads.records()).map(({ record }) => record.by)).toEqual([by]);
    });

    it("lets one of those change a record who have read it", async () => {
      const record = await begin(1, { x: "x" });
      const stored = await found(record.id);
      const changed = await Promise.all(
        [1, 2, 3].map((touchedAt) => uploads.update(stored, { ...stored.record, touchedAt })),
      );
      const winners = changed.filter((one) => one !== undefined);
      expect(winners).toHaveLength(1);
      expect((await found(record.id)).record).toEqual(winners[0]?.record);
    });

    it("refuses a version that somebody else has put there meanwhile", async () => {
      await stand.put("m/config.pbtxt", config);
      const record = await pushed(2, { "model.onnx": "two", "/config.pbtxt": "other" });
      await stand.put("m/2/model.onnx", "theirs");
      await expect(uploads.publish(record, false)).rejects.toThrow(
        "it is in the repository already",
      );
      expect(await contentOf(2, "2/model.onnx")).toBe("theirs");
      expect((await read()).config?.text).toBe(config);
    });

    it("may be told twice to publish", async () => {
      await stand.put("m/config.pbtxt", "old");
      const record = await pushed(2, { "model.onnx": "two", "/config.pbtxt": "new" });
      await uploads.publish(record, false);
      const after = await read();
      await uploads.publish(record, true);
      expect((await read()).versions).toEqual(after.versions);
    });

    it("leaves nothing behind of what was given up", async () => {
      const record = await begin(1, { "model.onnx": large, small: "s" });
      await sendPart(uploads, record, { file: 0, part: 0 }, large);
      await sendPart(uploads, record, { file: 1, part: 0 }, "s");
      await uploads.remove(record, "all");
      await uploads.tidy(Infinity);
      expect(await uploads.find(record.id)).toBeUndefined();
      expect(await stand.leftovers()).toEqual([]);
      expect(await uploads.create(record)).toBe(true);
    });
  });
}
