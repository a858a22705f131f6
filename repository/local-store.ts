import { readFile, readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { changePatience, isChanging, stillChanging } from "./change-marks.ts";
import { contentDigest } from "./content-digest.ts";
import { type FileStamp, fileStamps, fingerprintOf, unlessGone } from "./file-stamps.ts";
import { checkConfigBytes, configFileNames, storedVersions } from "./file-versions.ts";
import { checkModelName, isPathSegment } from "./model-name.ts";
import type { LocalVersion, ModelStore, StoredConfig, StoredModel } from "./model-store.ts";

const mostRepeats = 3;

/** A model repository in a directory: `<root>/<model>/config.pbtxt` and `<root>/<model>/<version>/…`. */
export class LocalStore implements ModelStore {
  readonly #root: string;
  readonly #configNames: readonly string[];

  /** @param configName take `configs/<configName>.pbtxt` instead of `config.pbtxt` where a model has it. */
  constructor(root: string, configName?: string) {
    this.#root = resolve(root);
    this.#configNames = configFileNames(configName);
  }

  async list(): Promise<readonly string[]> {
    const names = (await readable("model repository", readdir(this.#root))).filter(isPathSegment);
    const folders = await Promise.all(names.map((name) => this.#isFolder(name)));
    return names.filter((_, i) => folders[i]);
  }

  async read(name: string): Promise<StoredModel | undefined> {
    checkModelName(name);
    return readable(`model '${name}'`, this.#read(name));
  }

  async fetch(model: StoredModel, version: number): Promise<LocalVersion> {
    checkModelName(model.name);
    const modelDirectory = join(this.#root, model.name);
    const versionDirectory = join(modelDirectory, String(version));
    return { modelDirectory, versionDirectory, release: async () => {} };
  }

  async digest(name: string, version: number): Promise<string> {
    checkModelName(name);
    return readable(`model '${name}'`, contentDigest(join(this.#root, name), version));
  }

  async #read(name: string): Promise<StoredModel | undefined> {
    for (let tried = 1; tried <= changePatience.tries; tried++) {
      const before = await this.#changedAt(name);
      if (before === undefined) return undefined;
      const model = await this.#readOnce(name);
      // An exchange of files that began and ended meanwhile has changed the folder. Others may do that all the time.
      const whole = tried > mostRepeats || before === (await this.#changedAt(name));
      if (model && whole) return model;
      await sleep(changePatience.pauseMilliseconds);
    }
    throw stillChanging(name);
  }

  /** Undefined while its files are being exchanged. */
  async #readOnce(name: string): Promise<StoredModel | undefined> {
    const folder = join(this.#root, name);
    // The stamps come first: a file that changes while it is read differs from its stamp the next time.
    const stamps = await fileStamps(folder);
    if (isChanging(stamps)) return undefined;
    const config = await this.#readConfig(folder, stamps);
    const versions = storedVersions(stamps);
    return { name, versions, fingerprint: fingerprintOf(stamps), ...(config && { config }) };
  }

  async #readConfig(
    folder: string,
    stamps: readonly FileStamp[],
  ): Promise<StoredConfig | undefined> {
    const fileName = this.#configNames.find((path) => stamps.some((file) => file.path === path));
    if (fileName === undefined) return undefined;
    checkConfigBytes(fileName, (await stat(join(folder, fileName))).size);
    return { fileName, text: await readFile(join(folder, fileName), "utf8") };
  }

  async #isFolder(name: string): Promise<boolean> {
    return (await this.#changedAt(name)) !== undefined;
  }

  /** When something was last put into the folder or taken out; undefined when it is none. */
  async #changedAt(name: string): Promise<bigint | undefined> {
    const found = await unlessGone(stat(join(this.#root, name), { bigint: true }));
    return found?.isDirectory() ? found.mtimeNs : undefined;
  }
}

/** File system errors carry paths: they become a text that has none. */
async function readable<T>(subject: string, operation: Promise<T>): Promise<T> {
  try {
    return await operation;
  } catch (cause) {
    if (cause instanceof InferenceError) throw cause;
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    throw new InferenceError(StatusCode.Internal, `${subject}: cannot be read (${code})`, {
      cause,
    });
  }
}
