import { chmod, lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { CacheFolder } from "./cache-folder.ts";

const maxBytes = 10 * 2 ** 30;
const sizesFile = "sizes.json";

/** An optimised graph on disk, which stays there until it is released; without a folder, one that cannot be saved. */
export interface SavedGraph {
  readonly folder: string | undefined;
  /** To be called once. */
  release(): void;
}

/** Keeps the graphs that the runtime has optimised, a folder for each, so that the next load need not do it again. */
export class GraphCache {
  readonly #folders: CacheFolder;

  constructor(cacheDirectory: string) {
    this.#folders = new CacheFolder(path.join(cacheDirectory, "graphs-1"), maxBytes);
  }

  /** Undefined when nobody has tried to save it yet. */
  async find(key: string): Promise<SavedGraph | undefined> {
    const release = this.#folders.hold(key);
    const folder = await this.#folders.find(key);
    const sizes = folder && (await readSizes(folder));
    if (folder && sizes && (await isWhole(folder, sizes)))
      return { folder: sizes.length > 0 ? folder : undefined, release };
    release();
    if (folder) await this.#folders.remove(key);
    return undefined;
  }

  /** Adds a graph, whose files `fill` writes into an empty folder. Whether that went well, `find` tells. */
  async save(key: string, fill: (folder: string) => Promise<void>): Promise<void> {
    await this.#folders.put(key, async (to) => {
      await mkdir(to, { mode: 0o700 });
      await fill(to);
      const sizes = await Promise.all((await readdir(to)).map((name) => seal(to, name)));
      await writeFile(path.join(to, sizesFile), JSON.stringify(sizes), { mode: 0o600 });
    });
  }
}

type FileSize = readonly [name: string, bytes: number];

/** Running servers read these pages: a file that changed below them would end the process. */
async function seal(folder: string, name: string): Promise<FileSize> {
  const file = path.join(folder, name);
  const status = await lstat(file);
  if (!status.isFile()) throw new Error("an optimised graph consists of files");
  await chmod(file, 0o400);
  return [name, status.size];
}

async function readSizes(folder: string): Promise<readonly FileSize[] | undefined> {
  try {
    const sizes: unknown = JSON.parse(await readFile(path.join(folder, sizesFile), "utf8"));
    return Array.isArray(sizes) && sizes.every(isFileSize) ? sizes : undefined;
  } catch {
    return undefined;
  }
}

function isFileSize(value: unknown): value is FileSize {
  return Array.isArray(value) && typeof value[0] === "string" && typeof value[1] === "number";
}

/** After a loss of power a file may have its name and not its content. */
async function isWhole(folder: string, sizes: readonly FileSize[]): Promise<boolean> {
  try {
    const found = await Promise.all(sizes.map(([name]) => lstat(path.join(folder, name))));
    return sizes.every(([, bytes], i) => found[i]?.isFile() && found[i].size === bytes);
  } catch {
    return false;
  }
}
