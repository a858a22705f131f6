import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { anonymous } from "../../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { Upload } from "../../../protocol/upload.ts";
import { ModelRepository } from "../../../repository/model-repository.ts";
import type { UploadRecord } from "../../../repository/uploads/upload-record.ts";
import { LocalUploads } from "../../../repository/uploads/local-uploads.ts";
import {
  ModelLifecycle,
  type ModelControlMode,
} from "../../../serving/lifecycle/model-lifecycle.ts";
import { ServingEngine } from "../../../serving/serving-engine.ts";
import { ModelUploads } from "../../../serving/uploads/model-uploads.ts";
import { ModelDirectory } from "../../helpers/model-directory.ts";
import { SilentLog } from "../../helpers/silent-log.ts";
import { TextVersions } from "../../helpers/text-versions.ts";
import { type Contents, manifest, sendAll } from "../../helpers/upload-parts.ts";

const hour = 3_600_000;

/** A server that takes uploads into a directory of models, whose versions are texts. */
class Server {
  readonly versions = new TextVersions();
  readonly lifecycle: ModelLifecycle;
  readonly engine: ServingEngine;
  readonly uploads: ModelUploads;
  readonly place: LocalUploads;

  constructor(folder: string, now: () => number, mode: ModelControlMode = "none") {
    this.place = new LocalUploads(folder);
    const repository = new ModelRepository([this.place.store], [this.place]);
    const log = new SilentLog();
    this.lifecycle = new ModelLifecycle(
      repository,
      this.versions.start,
      {
        mode,
        pollSeconds: 1000,
        loadModels: [],
        loadThreadCount: 2,
        classifier: () => Promise.resolve((scheduler) => scheduler),
      },
      log,
    );
    this.engine = new ServingEngine(this.lifecycle, { strictReadiness: false });
    this.uploads = new ModelUploads({
      repository,
      engine: this.engine,
      log,
      now,
      maxBytes: 2 ** 30,
      keptMilliseconds: hour,
    });
  }

  async close(): Promise<void> {
    this.uploads.close();
    await this.lifecycle.close();
  }
}

describe("ModelUploads", () => {
  let models: ModelDirectory;
  let now: number;
  let server: Server;
  beforeEach(async () => {
    models = new ModelDirectory();
    now = 1_800_000_000_000;
    server = new Server(models.path, () => now);
    models.model("m", { 1: "one" });
    await server.lifecycle.start();
  });
  afterEach(async () => {
    await server.close();
    models.remove();
  });

  function begin(contents: Contents, version?: number, by = server): Promise<Upload> {
    const principal = { ...anonymous, name: "tester" };
    return by.uploads.begin("m", { version, files: manifest(contents), principal });
  }

  /** Sends all parts of an upload. */
  async function send({ id }: Upload, contents: Contents): Promise<void> {
    await sendAll(server.place, await recordOf(id), contents);
  }

  async function recordOf(id: string): Promise<UploadRecord> {
    const stored = await server.place.find(id);
    if (!stored) throw new Error("no such upload");
    return stored.record;
  }

  async function push(contents: Contents, version?: number): Promise<Upload> {
    const upload = await begin(contents, version);
    await send(upload, contents);
    return server.uploads.commit("m", upload.id);
  }

  /** What versions of the model answer, and with which text. */
  function answers(by = server): readonly string[] {
    return by.lifecycle.versions("m").map((running) => {
      const text = by.versions.started.find((started) => started === running)?.text;
      return `${running.model.version}: ${text}`;
    });
  }

  it.each(["none", "poll", "explicit"] as const)(
    "has what is pushed serve in mode %s, after it was opened where nobody sees it",
    async (mode) => {
      const other = new Server(models.path, () => now, mode);
      await other.lifecycle.start();
      const contents = { "model.onnx": "two" };
      const { id } = await begin(contents, undefined, other);
      await send({ ...(await other.uploads.find("m", id)) }, contents);
      const done = await other.uploads.commit("m", id);
      expect(done).toMatchObject({ version: 2, state: "done", servingVersions: ["2"] });
      expect(answers(other)).toEqual(["2: two"]);
      const views = other.versions.started.map(({ files }) => files.versionDirectory);
      expect(views.slice(-2).map((view) => view.includes(".tidepool-uploads"))).toEqual([
        true,
        false,
      ]);
      await other.close();
    },
  );

  it("keeps everything as it was when the version cannot be opened, and tells why", async () => {
    const before = readdirSync(join(models.path, "m"));
    const contents = { "model.onnx": "broken two" };
    await expect(push(contents)).rejects.toMatchObject({
      code: StatusCode.InvalidArg,
      message: "model 'm', version 2 cannot be served, and is not kept: m is broken two",
    });
    expect(answers()).toEqual(["1: one"]);
    expect(readdirSync(join(models.path, "m"))).toEqual(before);
    expect(readdirSync(join(models.path, ".tidepool-uploads"))).toEqual([]);
    expect(await push({ "model.onnx": "two" })).toMatchObject({ version: 2 });
  });

  it("keeps an upload whose opening failed for want of somebody who could", async () => {
    const contents = { "model.onnx": "two" };
    const upload = await begin(contents);
    await send(upload, contents);
    const { start } = server.versions;
    Object.assign(server.engine, {
      probe: () => Promise.reject(new InferenceError(StatusCode.Unavailable, "no pool")),
    });
    await expect(server.uploads.commit("m", upload.id)).rejects.toThrow("no pool");
    expect(await server.uploads.find("m", upload.id)).toMatchObject({ state: "uploading" });
    Reflect.deleteProperty(server.engine, "probe");
    expect(start).toBe(server.versions.start);
    expect(await server.uploads.commit("m", upload.id)).toMatchObject({ state: "done" });
  });

  it("opens the other versions that would serve, too, when a file changes that all share", async () => {
    const policy = "version_policy { all {} }\n";
    const config = `backend: "onnxruntime"\n${policy}`;
    await push({ "/config.pbtxt": config, "model.onnx": "two" });
    expect(answers()).toEqual(["1: one", "2: two"]);
    models.write("m/1/model.onnx", "broken by now");
    const other = { "/config.pbtxt": `${config}max_batch_size: 2\n`, "model.onnx": "three" };
    await expect(push(other)).rejects.toThrow("broken by now");
    expect(answers()).toEqual(["1: one", "2: two"]);
    expect(await push({ "model.onnx": "four" }, 4)).toMatchObject({
      state: "done",
      servingVersions: ["1", "2"],
      reason: expect.stringContaining("broken by now"),
    });
  });

  it("says so when the policy of the config does not choose what was pushed", async () => {
    const done = await push({
      "/config.pbtxt": 'backend: "onnxruntime"\nversion_policy { specific { versions: [1] } }\n',
      "model.onnx": "two",
    });
    expect(done.servingVersions).toEqual(["1"]);
    expect(done.reason).toContain("version policy");
  });

  it("joins uploads of the same files, and refuses others of the same version by name", async () => {
    const contents = { "model.onnx": "two", more: "more" };
    const [one, other] = await Promise.all([begin(contents), begin(contents)]);
    expect(other.id).toBe(one.id);
    const refused = begin({ "model.onnx": "theirs" }, 2);
    await expect(refused).rejects.toMatchObject({ code: StatusCode.AlreadyExists, upload: one.id });
    await expect(refused).rejects.toThrow(/begun by tester at 20\d\d-.*expected another version/u);
    expect(await begin({ "model.onnx": "theirs" })).toMatchObject({ version: 3 });
  });

  it("gives those who begin at once versions of their own", async () => {
    const all = await Promise.all([1, 2, 3, 4].map((at) => begin({ "model.onnx": `text ${at}` })));
    expect(new Set(all.map(({ version }) => version))).toEqual(new Set([2, 3, 4, 5]));
    const raced = await Promise.allSettled([7, 8].map((at) => begin({ x: String(at) }, 9)));
    expect(raced.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  it("answers who asks again as it did the first time", async () => {
    const contents = { "model.onnx": "two" };
    const upload = await begin(contents);
    await send(upload, contents);
    const both = [1, 2].map(() => server.uploads.commit("m", upload.id));
    const [one, other] = await Promise.all(both);
    expect(other).toEqual(one);
    expect(await server.uploads.commit("m", upload.id)).toEqual(one);
    expect(await begin(contents)).toMatchObject({ id: upload.id, state: "done" });
    await expect(begin(contents, 1)).rejects.toThrow("in the repository already");
    await rm(join(models.path, "m/2"), { recursive: true });
    expect(await begin(contents)).toMatchObject({ version: 2, state: "uploading" });
  });

  it("goes on at another server, and after a restart", async () => {
    const contents = { "model.onnx": "two" };
    const upload = await begin(contents);
    await send(upload, contents);
    const other = new Server(models.path, () => now);
    await other.lifecycle.start();
    expect(await begin(contents, undefined, other)).toMatchObject({ files: [{ parts: [0] }] });
    expect(await other.uploads.commit("m", upload.id)).toMatchObject({ servingVersions: ["2"] });
    await other.close();
  });

  it("leaves alone what another server works on, until that one is silent for long", async () => {
    const contents = { "model.onnx": "two" };
    const upload = await begin(contents);
    await send(upload, contents);
    const stored = await server.place.find(upload.id);
    if (!stored) throw new Error("no upload");
    const held = { ...stored.record, state: "opening", touchedAt: now } as const;
    await server.place.update(stored, held);
    await expect(server.uploads.commit("m", upload.id)).rejects.toMatchObject({
      code: StatusCode.Unavailable,
      retryAfterSeconds: 2,
    });
    await expect(server.uploads.abort("m", upload.id)).rejects.toThrow("being committed");
    now += 31_000;
    expect(await server.uploads.commit("m", upload.id)).toMatchObject({ state: "done" });
  });

  it("finishes what a server that is gone was about to make visible", async () => {
    const contents = { "model.onnx": "two" };
    const upload = await begin(contents);
    await send(upload, contents);
    const stored = await server.place.find(upload.id);
    if (!stored) throw new Error("no upload");
    await server.place.seal(stored.record);
    await server.place.update(stored, { ...stored.record, state: "publishing", touchedAt: now });
    await server.uploads.sweep();
    expect(answers()).toEqual(["1: one"]);
    now += 31_000;
    await server.uploads.sweep();
    expect(answers()).toEqual(["2: two"]);
  });

  it("forgets uploads that are too old, and those of which the client says so", async () => {
    const contents = { "model.onnx": "two" };
    const upload = await begin(contents);
    expect(upload.expiresAt).toBe(now + hour);
    now += hour + 1;
    expect(await begin({ "model.onnx": "other" }, 2)).toMatchObject({ state: "uploading" });
    await server.uploads.abort("m", upload.id);
    await expect(server.uploads.find("m", upload.id)).rejects.toThrow("is not found");
    await begin(contents);
    now += hour + 1;
    await server.uploads.sweep();
    expect(readdirSync(join(models.path, ".tidepool-uploads"))).toEqual([]);
  });

  it("finds an upload for its own model only", async () => {
    const { id } = await begin({ "model.onnx": "two" });
    for (const [model, wrong] of [
      ["other", id],
      ["m", "0".repeat(32)],
      ["m", "../../etc"],
    ] as const)
      await expect(server.uploads.find(model, wrong)).rejects.toMatchObject({
        code: StatusCode.NotFound,
      });
  });

  it("bounds how many uploads are not finished", async () => {
    for (let at = 0; at < 64; at++) await begin({ "model.onnx": `text ${at}` });
    await expect(begin({ "model.onnx": "one more" })).rejects.toMatchObject({
      code: StatusCode.Unavailable,
      retryAfterSeconds: 60,
    });
  });

  it("refuses versions and names that could be none", async () => {
    for (const version of [0, -1, 1.5, NaN, 2 ** 53])
      await expect(begin({ x: "x" }, version)).rejects.toThrow("expected a whole number from 1");
    const files = manifest({ x: "x" });
    for (const name of ["..", "a/b", ".tidepool-uploads", ""])
      await expect(
        server.uploads.begin(name, { version: 1, files, principal: anonymous }),
      ).rejects.toThrow("model name");
  });
});
