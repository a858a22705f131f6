import { randomUUID } from "node:crypto";
import { lstat, mkdir, readdir, rename, rm, stat, statfs, utimes } from "node:fs/promises";
import path from "node:path";

const ownerOnly = 0o700;
const othersMayWrite = 0o022;
const unfinished = ".unfinished";
/** What lies about unfinished for so long was left by a process that died. */
const abandonedMilliseconds = 3_600_000;
/** What even the smallest file takes on disk. */
const blockBytes = 4096;
/** No folder may take more of its disk, however small that is. */
const largestShare = 0.1;

/**
 * A folder of things that can be made again. Each entry, a file or a folder of files, appears whole or not at all; what
 * another user could have written is not used; over the bound, what was used longest ago goes first.
 */
export class CacheFolder {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #held = new Map<string, number>();

  constructor(folder: string, maxBytes: number) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  /** Where the entry lies, or undefined. Counts as a use. */
  async find(name: string): Promise<string | undefined> {
    const entry = path.join(this.#folder, name);
    try {
      if (!(await isOurs(this.#folder)) || !(await isOurs(entry))) return undefined;
      const now = new Date();
      // A cache that came with a read-only image works all the same.
      await utimes(entry, now, now).catch(() => {});
      return entry;
    } catch {
      return undefined;
    }
  }

  /** Keeps this process from removing the entry until the returned function is called, once. */
  hold(name: string): () => void {
    const count = (change: number): void => {
      this.#held.set(name, (this.#held.get(name) ?? 0) + change);
      if (this.#held.get(name) === 0) this.#held.delete(name);
    };
    count(1);
    return () => count(-1);
  }

  /**
   * Adds an entry: `make` writes it to the path it is given. Resolves with false when it could not be added; a cache
   * that cannot be written to makes things slower and must not make them fail.
   */
  async put(name: string, make: (to: string) => Promise<void>): Promise<boolean> {
    // Another process may look at this moment: it sees the whole entry or none.
    const to = path.join(this.#folder, `${randomUUID()}${unfinished}`);
    try {
      await mkdir(this.#folder, { recursive: true, mode: ownerOnly });
      if (!(await isOurs(this.#folder))) return false;
      await make(to);
      await rename(to, path.join(this.#folder, name));
      await this.#prune(name);
      return true;
    } catch {
      return false;
    } finally {
      await rm(to, { recursive: true, force: true }).catch(() => {});
    }
  }

  async remove(name: string): Promise<void> {
    await rm(path.join(this.#folder, name), { recursive: true, force: true });
  }

  async #prune(newest: string): Promise<void> {
    const names = await readdir(this.#folder);
    const entries = await Promise.all(names.map((name) => entryOf(this.#folder, name)));
    const byAge = entries
      .filter((entry) => entry !== undefined)
      .toSorted((a, b) => a.used - b.used);
    const { blocks, bsize } = await statfs(this.#folder);
    const maxBytes = Math.min(this.#maxBytes, largestShare * blocks * bsize);
    let bytes = byAge.reduce((sum, entry) => sum + entry.bytes, 0);
    for (const entry of byAge) {
      const { name } = entry;
      const spare = name.endsWith(unfinished)
        ? entry.used < Date.now() - abandonedMilliseconds
        : bytes > maxBytes && name !== newest && !this.#held.has(name);
      if (!spare) continue;
      await this.remove(name);
      bytes -= entry.bytes;
    }
  }
}

interface Entry {
  readonly name: string;
  readonly bytes: number;
  /** Time of the last use, in milliseconds. */
  readonly used: number;
}

/** Undefined for what another process removes at this moment. */
async function entryOf(folder: string, name: string): Promise<Entry | undefined> {
  try {
    const entry = path.join(folder, name);
    const status = await lstat(entry);
    const files = status.isDirectory() ? await readdir(entry) : [];
    const sizes = await Promise.all(
      files.map(async (file) => (await lstat(path.join(entry, file))).size),
    );
    const bytes = [status.size, ...sizes].reduce(
      (sum, size) => sum + Math.max(size, blockBytes),
      0,
    );
    return { name, bytes, used: status.mtimeMs };
  } catch {
    return undefined;
  }
}

/** True when nobody but this user could have put it there. */
async function isOurs(file: string): Promise<boolean> {
  const status = await stat(file);
  const user = process.getuid?.();
  return (user === undefined || status.uid === user) && (status.mode & othersMayWrite) === 0;
}
