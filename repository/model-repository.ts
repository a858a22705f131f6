import type { LoadOptions } from "../protocol/engine.ts";
import { InferenceError, StatusCode, invalidArgument } from "../protocol/error.ts";
import { checkModelName } from "./model-name.ts";
import type { ModelStore, StoredModel } from "./model-store.ts";
import { contentFingerprint, OverrideStore } from "./override-store.ts";
import { type RepositoryModel, type RepositoryVersion, resolveModel } from "./repository-model.ts";
import type { UploadRecord } from "./uploads/upload-record.ts";
import type { UploadStore } from "./uploads/upload-store.ts";

/** A name in the repository; no model can be loaded under one that several stores have. */
export interface ListedModel {
  readonly name: string;
  readonly ambiguous: boolean;
}

/** All stores as one: what models there are, and all that a load must know of one of them. */
export class ModelRepository {
  readonly #stores: readonly ModelStore[];
  readonly #told = new Set<() => void>();
  /** Where models are uploaded to, in the order of the stores. */
  readonly uploads: readonly UploadStore[];

  constructor(stores: readonly ModelStore[], uploads: readonly UploadStore[] = []) {
    this.#stores = stores;
    this.uploads = uploads;
  }

  /** Somebody else has seen that it is not what it was: those who watch it look now. */
  tellChanged(): void {
    for (const listener of this.#told) listener();
  }

  /** @returns takes the listener back */
  onToldChanged(listener: () => void): () => void {
    this.#told.add(listener);
    return () => void this.#told.delete(listener);
  }

  /** Sorted by name. */
  async list(): Promise<readonly ListedModel[]> {
    const lists = await Promise.all(this.#stores.map((store) => store.list()));
    const counts = new Map<string, number>();
    for (const name of lists.flat()) counts.set(name, (counts.get(name) ?? 0) + 1);
    return [...counts]
      .map(([name, count]) => ({ name, ambiguous: count > 1 }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** True for a name that some store has. */
  async has(name: string): Promise<boolean> {
    return (await this.list()).some((listed) => listed.name === name);
  }

  /** For every name a text that changes when its model does; also when it turns readable or ambiguous. */
  async fingerprints(): Promise<ReadonlyMap<string, string>> {
    const names = (await this.list()).map(({ name }) => name);
    const found = new Map<string, string>();
    // One after another: this runs again and again behind the server's back, and must not take the disk from it.
    for (const name of names) found.set(name, await this.#fingerprint(name));
    return found;
  }

  /**
   * The model as it is now, with what the load request brings along put in place of it.
   * Rejects when there is no such model, more than one, or a config that cannot be read.
   */
  async read(name: string, options: LoadOptions = {}): Promise<RepositoryModel> {
    checkModelName(name);
    if (options.files && options.files.size > 0) return this.#readOverride(name, options);
    const [found, another] = await this.#find(name);
    if (!found)
      throw new InferenceError(StatusCode.NotFound, "model not found in any model repository");
    if (another) throw invalidArgument("not unique across all model repositories");
    return resolveModel(found.store, found.model, options.config);
  }

  /**
   * The files of one version, as long as they are those that the fingerprint tells of: whoever read its config beside them
   * may be another process, some time ago. Files that are here already need no place that can be reached, nor one that
   * still has them. Released with the version.
   */
  async version(name: string, version: number, fingerprint: string): Promise<RepositoryVersion> {
    checkModelName(name);
    for (const store of this.#stores) {
      const kept = await store.kept?.(name, version, fingerprint);
      if (kept) return { version, fingerprint, fetch: () => Promise.resolve(kept) };
    }
    for (const { store, model } of await this.#find(name)) {
      const same = model.versions.find((one) => one.version === version);
      if (same?.fingerprint !== fingerprint) continue;
      return { version, fingerprint, fetch: (options) => store.fetch(model, version, options) };
    }
    throw new InferenceError(
      StatusCode.Unavailable,
      `model '${name}', version ${version}: its files are no longer those that it was loaded from; load it again`,
    );
  }

  /** The same for files that a load request brought along; released with the version. */
  async broughtVersion(
    name: string,
    version: number,
    files: ReadonlyMap<string, Uint8Array>,
  ): Promise<RepositoryVersion> {
    const store = await OverrideStore.write(name, files);
    const model = await store.read(name);
    if (!model) throw new Error("the override's folder is gone");
    return {
      version,
      fingerprint: contentFingerprint(files),
      fetch: () => store.fetch(model, version).finally(() => store.release()),
    };
  }

  /**
   * A model as it will be once a sealed upload is part of it, with those versions that have to be opened before: the
   * uploaded one, and where files change that all share, all that would be served.
   */
  async staged(uploads: UploadStore, record: UploadRecord): Promise<RepositoryModel> {
    const { store, model, changesShared } = await uploads.staged(record);
    const resolved = resolveModel(store, model, undefined, record.version);
    const versions = resolved.versions.filter(
      ({ version }) => changesShared || version === record.version,
    );
    return { ...resolved, versions, staged: record.id };
  }

  /** The files of a version of a sealed upload, as {@link version} gives those of others. */
  async stagedVersion(
    id: string,
    version: number,
    fingerprint: string,
  ): Promise<RepositoryVersion> {
    for (const uploads of this.uploads) {
      const found = await uploads.find(id);
      const staged = found && (await uploads.staged(found.record));
      const same = staged?.model.versions.find((one) => one.version === version);
      if (!staged || same?.fingerprint !== fingerprint) continue;
      const { store, model } = staged;
      return { version, fingerprint, fetch: (options) => store.fetch(model, version, options) };
    }
    throw new InferenceError(StatusCode.Unavailable, `upload '${id}' is not there any more`);
  }

  async #readOverride(name: string, options: LoadOptions): Promise<RepositoryModel> {
    if (options.config === undefined)
      throw invalidArgument("load parameter 'config' must be specified for model file override");
    const files = options.files ?? new Map<string, Uint8Array>();
    const store = await OverrideStore.write(name, files);
    try {
      const model = await store.read(name);
      if (!model) throw new Error("the override's folder is gone");
      const resolved = resolveModel(store, model, options.config);
      // Who is given the same files elsewhere must find them equal, and stamps of temporary files differ.
      const fingerprint = contentFingerprint(files);
      const versions = resolved.versions.map((version) => ({ ...version, fingerprint }));
      return { ...resolved, versions, files, release: () => store.release() };
    } catch (error) {
      await store.release();
      throw error;
    }
  }

  async #find(name: string): Promise<readonly FoundModel[]> {
    const models = await Promise.all(
      this.#stores.map(async (store) => ({ store, model: await store.read(name) })),
    );
    return models.filter((found): found is FoundModel => found.model !== undefined);
  }

  async #fingerprint(name: string): Promise<string> {
    try {
      return (await this.#find(name)).map(({ model }) => model.fingerprint).join(" ");
    } catch (error) {
      // Not to be read just now: that is a state like another, and its load will tell why.
      return `error: ${InferenceError.from(error).message}`;
    }
  }
}

interface FoundModel {
  readonly store: ModelStore;
  readonly model: StoredModel;
}
