import { createHash } from "node:crypto";
import path from "node:path";
import { buffer } from "node:stream/consumers";
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
import { type S3File, s3Files } from "./s3-files.ts";
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

  constructor(options: S3StoreOptions) {
    this.#options = options;
    this.#configNames = configFileNames(options.configName);
  }

  async list(): Promise<readonly string[]> {
    const { transfer, prefix } = this.#options;
    return (await transfer.bucket.folders("model repository", prefix)).filter(isPathSegment);
  }

  async read(name: string): Promise<StoredModel | undefined> {
    checkModelName(name);
    const { transfer, prefix } = this.#options;
    const folder = `${prefix}${name}/`;
    const objects = await transfer.bucket.objects(`model '${name}'`, folder, maxObjects);
    if (objects.length === 0) {
      this.#configs.delete(name);
      return undefined;
    }
    const { files, stamps } = s3Files(folder, objects);
    const config = await this.#readConfig(name, files);
    const versions = storedVersions(stamps);
    const model = { name, versions, fingerprint: fingerprintOf(stamps), ...(config && { config }) };
    this.#files.set(model, files);
    return model;
  }

  async fetch(
    model: StoredModel,
    version: number,
    options: FetchOptions = {},
  ): Promise<LocalVersion> {
    const subject = `model '${model.name}' version ${version}`;
    const files = filesOf(model, version, this.#files.get(model) ?? []);
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
