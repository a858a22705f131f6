import { readFile, readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { InferenceError, StatusCode, invalidArgument } from "../protocol/error.ts";
import { type FileStamp, fileStamps, fingerprintOf, unlessGone } from "./file-stamps.ts";
import { checkModelName, isPathSegment } from "./model-name.ts";
import type {
  LocalVersion,
  ModelStore,
  StoredConfig,
  StoredModel,
  StoredVersion,
} from "./model-store.ts";

const maxConfigBytes = 1024 * 1024;

/** A model repository in a directory: `<root>/<model>/config.pbtxt` and `<root>/<model>/<version>/…`. */
export class LocalStore implements ModelStore {
  readonly #root: string;
  readonly #configName: string | undefined;

  /** @param configName take `configs/<configName>.pbtxt` instead of `config.pbtxt` where a model has it. */
  constructor(root: string, configName?: string) {
    this.#root = resolve(root);
    this.#configName = configName === "" ? undefined : configName;
    if (this.#configName !== undefined && !isPathSegment(this.#configName))
      throw invalidArgument(
        `model config name: given '${configName}', expected the name of a file without its '.pbtxt'`,
      );
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

  async #read(name: string): Promise<StoredModel | undefined> {
    if (!(await this.#isFolder(name))) return undefined;
    const folder = join(this.#root, name);
    // The stamps come first: a file that changes while it is read differs from its stamp the next time.
    const stamps = await fileStamps(folder);
    const config = await this.#readConfig(folder, stamps);
    const versions = storedVersions(stamps);
    return { name, versions, fingerprint: fingerprintOf(stamps), ...(config && { config }) };
  }

  async #readConfig(
    folder: string,
    stamps: readonly FileStamp[],
  ): Promise<StoredConfig | undefined> {
    const candidates = [`configs/${this.#configName}.pbtxt`, "config.pbtxt"];
    const fileName = candidates.find((path) => stamps.some((file) => file.path === path));
    if (fileName === undefined) return undefined;
    const { size } = await stat(join(folder, fileName));
    if (size > maxConfigBytes)
      throw invalidArgument(`${fileName}: given ${size} bytes, expected at most ${maxConfigBytes}`);
    return { fileName, text: await readFile(join(folder, fileName), "utf8") };
  }

  async #isFolder(name: string): Promise<boolean> {
    return (await unlessGone(stat(join(this.#root, name))))?.isDirectory() ?? false;
  }
}

function storedVersions(stamps: readonly FileStamp[]): readonly StoredVersion[] {
  const folders = stamps.filter(({ path, isDirectory }) => isDirectory && isVersionName(path));
  const versions = new Set(folders.map(({ path }) => path));
  const shared = "";
  const groups = Map.groupBy(stamps, ({ path }) => {
    const first = firstSegment(path);
    return versions.has(first) ? first : shared;
  });
  return folders
    .map(({ path: folder }) => {
      const own = groups.get(folder) ?? [];
      const below = own.map(({ path }) => path.slice(folder.length + 1));
      return {
        version: Number(folder),
        files: below.filter((path) => path !== "" && !path.includes("/")),
        fingerprint: fingerprintOf([...(groups.get(shared) ?? []), ...own]),
      };
    })
    .toSorted((a, b) => a.version - b.version);
}

function isVersionName(text: string): boolean {
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text));
}

function firstSegment(path: string): string {
  const end = path.indexOf("/");
  return end < 0 ? path : path.slice(0, end);
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
