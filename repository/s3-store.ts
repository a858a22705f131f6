import { createHash } from "node:crypto";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import {
  changePatience,
  hiddenVersions,
  isChanging,
  isMark,
  newModels,
  stagingFolder,
  stillChanging,
} from "./change-marks.ts";
import { checkConfigBytes, configFileNames, storedVersions } from "./file-versions.ts";
import { fingerprintOf } from "./file-stamps.ts";
import type { CachedFiles, ModelCache } from "./model-cache.ts";
import { checkModelName, isPathSegment } from "./model-name.ts";
import type {
  FetchOptions,
  LocalVersion,
  ModelStore,
  StoredConfig,
  StoredModel,
} from "./model-store.ts";
import { download, type S3Transfer } from "./s3-download.ts";
import { isDiskError, s3ObjectFailure, S3TransferError } from "./s3-error.ts";
import { type S3File, type S3Files, s3Files } from "./s3-files.ts";
import { retrying } from "./s3-retry.ts";

export interface S3StoreOptions {
  readonly transfer: S3Transfer;
  /** What the keys of all models begin with: "" or a text that ends in "/". */
  readonly prefix: string;
  /** Tells this place from all others whose files lie in the same cache. */
  readonly place: string;
  readonly cache: ModelCache;
  /** Take `configs/<configName>.pbtxt` instead of `config.pbtxt` where a model has it. */
  readonly configName?: string;
}

// A model has a handful of files; whoever can write to the bucket must not fill our memory.
const maxObjects = 20_000;
/** What S3 lists at once, and so as it was at one moment. */
const pageObjects = 1000;

const mostRepeats = 5;

/** Compares what was fetched with what it should be; rejects when it is something else. */
export type VerifyFetched = (folder: string, version: number) => Promise<void>;

/**
 * A model repository in S3: `<prefix><model>/config.pbtxt` and `<prefix><model>/<version>/…`. Listings and their ETags
 * tell what there is; the files of a version are brought to the local cache when they are needed.
 */
export class S3Store implements ModelStore {
  readonly #options: S3StoreOptions;
  readonly #configNames: readonly string[];
  readonly #configs = new Map<string, ReadConfig>();
  /** A version is fetched from the objects of the listing that its model was read from. */
  readonly #files = new WeakMap<StoredModel, readonly S3File[]>();
  readonly #verify = new WeakMap<StoredModel, VerifyFetched>();

  constructor(options: S3StoreOptions) {
    this.#options = options;
    this.#configNames = configFileNames(options.configName);
  }

  async list(): Promise<readonly string[]> {
    const { transfer, prefix } = this.#options;
    const folders = await transfer.bucket.folders("model repository", prefix);
    const names = folders.filter(isPathSegment);
    if (!folders.includes(stagingFolder)) return names;
    const marks = `${prefix}${stagingFolder}/${newModels}/`;
    const coming = await transfer.bucket.objects("model repository", marks, maxObjects);
    const hidden = new Set(coming.map(({ key }) => key.slice(marks.length)));
    return names.filter((name) => !hidden.has(name));
  }

  async read(name: string): Promise<StoredModel | undefined> {
    checkModelName(name);
    const files = await this.listing(name);
    if (files) return this.modelOf(name, files);
    this.#configs.delete(name);
    return undefined;
  }

  /** What there is of a model, without versions that are still coming; undefined where there is nothing. */
  async listing(name: string): Promise<S3Files | undefined> {
    for (let tried = 1; tried <= changePatience.tries; tried++) {
      const all = await this.#list(name);
      if (!isChanging(all.stamps)) return visible(all);
      await sleep(changePatience.pauseMilliseconds);
    }
    throw stillChanging(name);
  }

  /** The model that such files make up; its versions are fetched from them, wherever they lie. */
  async modelOf(
    name: string,
    { files, stamps }: S3Files,
    verify?: VerifyFetched,
  ): Promise<StoredModel> {
    const config = await this.#readConfig(name, files);
    const versions = storedVersions(stamps);
    const model = { name, versions, fingerprint: fingerprintOf(stamps), ...(config && { config }) };
    this.#files.set(model, files);
    if (verify) this.#verify.set(model, verify);
    return model;
  }

  async fetch(
    model: StoredModel,
    version: number,
    options: FetchOptions = {},
  ): Promise<LocalVersion> {
    const subject = `model '${model.name}' version ${version}`;
    const files = filesOf(model, version, this.#files.get(model) ?? []);
    const verify = this.#verify.get(model);
    const cached = await this.#options.cache.acquire(
      {
        name: this.#entryName(model.name, version, fingerprintIn(model, version)),
        totalBytes: files.reduce((sum, { object }) => sum + object.bytes, 0),
        fill: async (folder, report, signal) => {
          try {
            await download(files, { folder, report, signal }, this.#options.transfer);
          } catch (error) {
            signal.throwIfAborted();
            throw isDiskError(error) ? error : s3ObjectFailure(subject, error);
          }
          await verify?.(folder, version);
        },
      },
      options,
    );
    return localVersion(cached, version);
  }

  async kept(
    name: string,
    version: number,
    fingerprint: string,
  ): Promise<LocalVersion | undefined> {
    const cached = await this.#options.cache.kept(this.#entryName(name, version, fingerprint));
    return cached && localVersion(cached, version);
  }

  /** Again where it took several requests, until nothing changes between them. */
  async #list(name: string): Promise<S3Files> {
    const { transfer, prefix } = this.#options;
    const folder = `${prefix}${name}/`;
    const list = async (): Promise<S3Files> =>
      s3Files(folder, await transfer.bucket.objects(`model '${name}'`, folder, maxObjects));
    let found = await list();
    for (let tried = 1; found.files.length > pageObjects && tried < mostRepeats; tried++) {
      const again = await list();
      if (fingerprintOf(again.stamps) === fingerprintOf(found.stamps)) break;
      found = again;
    }
    return found;
  }

  async #readConfig(name: string, files: readonly S3File[]): Promise<StoredConfig | undefined> {
    const found = this.#configNames.flatMap((wanted) =>
      files.filter((file) => file.path === wanted),
    );
    const [file] = found;
    if (!file) return undefined;
    const { path: fileName, object } = file;
    checkConfigBytes(fileName, object.bytes);
    const known = this.#configs.get(name);
    if (known?.fileName === fileName && known.etag === object.etag) return known;
    const text = await this.#readText(`model '${name}': ${fileName}`, file);
    const config = { fileName, text, etag: object.etag };
    this.#configs.set(name, config);
    return config;
  }

  async #readText(subject: string, { object }: S3File): Promise<string> {
    const { bucket, patience } = this.#options.transfer;
    try {
      return await retrying(patience, undefined, async (signal) => {
        const bytes = await buffer((await bucket.get({ object }, signal)).stream);
        if (bytes.length !== object.bytes)
          throw new S3TransferError("Truncated", `${bytes.length} bytes of ${object.bytes} came`);
        return bytes.toString("utf8");
      });
    } catch (error) {
      throw s3ObjectFailure(subject, error);
    }
  }

  #entryName(model: string, version: number, fingerprint: string | undefined): string {
    const parts = [this.#options.place, model, String(version), fingerprint];
    return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  }
}

interface ReadConfig extends StoredConfig {
  readonly etag: string;
}

function visible({ files, stamps }: S3Files): S3Files | undefined {
  const hidden = hiddenVersions(stamps);
  const isVisible = ({ path: file }: { readonly path: string }): boolean =>
    !isMark(file) && !hidden.has(file.split("/")[0] ?? "");
  const left = { files: files.filter(isVisible), stamps: stamps.filter(isVisible) };
  return left.stamps.length === 0 ? undefined : left;
}

function fingerprintIn({ versions }: StoredModel, version: number): string | undefined {
  return versions.find((one) => one.version === version)?.fingerprint;
}

function localVersion(cached: CachedFiles, version: number): LocalVersion {
  const versionDirectory = path.join(cached.folder, String(version));
  return { modelDirectory: cached.folder, versionDirectory, release: () => cached.release() };
}

/** Those of the version itself, and those that all versions share. */
function filesOf(model: StoredModel, version: number, files: readonly S3File[]): readonly S3File[] {
  const others = new Set(model.versions.map((one) => String(one.version)));
  others.delete(String(version));
  return files.filter((file) => {
    const [first = "", ...below] = file.path.split("/");
    return below.length === 0 || !others.has(first);
  });
}
