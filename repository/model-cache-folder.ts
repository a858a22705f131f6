import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, statfs } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { Claim, readClaim } from "./model-cache-claim.ts";
import { readManifest } from "./model-cache-entry.ts";

const entryName = /^[0-9a-f]{64}$/;
const endings = {
  lock: ".lock",
  user: ".user",
  unfinished: ".unfinished",
  draft: ".draft",
} as const;
const othersMayWrite = 0o022;
const lockPauseMilliseconds = 5;
/** No cache takes more of its disk, however small that is. */
const largestShare = 0.5;
/** A draft lives for a moment; what is older was left by a process that died. */
const abandonedMilliseconds = 600_000;

/** What one process uses of the folder. */
export interface UserNote {
  readonly entries: readonly string[];
}

/** What a process that fetches an entry tells the others. */
export interface LockNote {
  readonly fetchedBytes: number;
  readonly totalBytes: number;
}

/**
 * The folder that several processes share as a cache of models: who uses what, who fetches what, and what has to go to
 * keep the bound. An entry that any process uses stays.
 */
export class ModelCacheFolder {
  readonly path: string;
  readonly #maxBytes: number;

  constructor(folder: string, maxBytes: number) {
    this.path = folder;
    this.#maxBytes = maxBytes;
  }

  entry(name: string): string {
    return path.join(this.path, name);
  }

  lockFile(name: string): string {
    return path.join(this.path, `${name}${endings.lock}`);
  }

  /** A path of its own for one process's try to fetch an entry. */
  unfinished(name: string): string {
    return path.join(this.path, `${name}.${randomUUID()}${endings.unfinished}`);
  }

  /** Says that this process uses something. */
  async enlist(note: UserNote): Promise<Claim<UserNote>> {
    await this.#open();
    const claim = await Claim.take(path.join(this.path, `${randomUUID()}${endings.user}`), note);
    if (!claim) throw new Error("a fresh name is taken");
    return claim;
  }

  /** Runs a short task while no other process runs one: looking whether something is used, and relying on it. */
  async alone<T>(task: () => Promise<T>): Promise<T> {
    const file = path.join(this.path, endings.lock);
    for (;;) {
      const claim = await Claim.take(file, {});
      if (!claim) {
        await sleep(lockPauseMilliseconds);
        continue;
      }
      try {
        return await task();
      } finally {
        await claim.release();
      }
    }
  }

  /** Bytes of all entries. */
  async residentBytes(): Promise<number> {
    return sum(await this.#entries(await readdir(this.path)));
  }

  /**
   * Removes what nobody uses, longest unused first, until so many more bytes fit, and what dead processes left behind.
   * Rejects when they cannot fit.
   *
   * @returns the number of entries removed
   */
  async makeRoom(name: string, bytes: number): Promise<number> {
    const discarded = await this.alone(async () => {
      const names = await readdir(this.path);
      await this.#removeAbandoned(names, name);
      const entries = await this.#entries(names);
      const limit = await this.#limit(sum(entries));
      const used = await this.#used(names);
      let excess = sum(entries) + (await this.#announced(names, name)) + bytes - limit;
      const victims: string[] = [];
      for (const entry of entries.toSorted((a, b) => a.usedMilliseconds - b.usedMilliseconds)) {
        if (excess <= 0) break;
        if (used.has(entry.name)) continue;
        victims.push(entry.name);
        excess -= entry.bytes;
      }
      if (excess > 0) throw noRoom(bytes, limit);
      return Promise.all(victims.map((victim) => this.#setAside(victim)));
    });
    // Their files may be many, and the other processes need not wait for that.
    for (const folder of discarded) await rm(folder, { recursive: true, force: true });
    return discarded.length;
  }

  /** Makes the folder, and refuses one that other users can write to. */
  async #open(): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 });
    const { uid, mode } = await stat(this.path);
    const user = process.getuid?.();
    if ((user === undefined || uid === user) && (mode & othersMayWrite) === 0) return;
    throw new InferenceError(
      StatusCode.Internal,
      "model cache: its folder belongs to, or can be written by, other users; expected one of this user alone",
    );
  }

  async #setAside(name: string): Promise<string> {
    const aside = this.unfinished(name);
    await rename(this.entry(name), aside);
    return aside;
  }

  async #limit(residentBytes: number): Promise<number> {
    const { blocks, bavail, bsize } = await statfs(this.path);
    return Math.min(this.#maxBytes, largestShare * blocks * bsize, residentBytes + bavail * bsize);
  }

  async #used(names: readonly string[]): Promise<ReadonlySet<string>> {
    const used = new Set<string>();
    for (const name of ending(names, endings.user)) {
      const note = await readClaim(this.entry(name));
      if (!isUserNote(note)) await rm(this.entry(name), { force: true });
      else for (const entry of note.entries) used.add(entry);
    }
    return used;
  }

  /** Bytes that other downloads are about to bring. */
  async #announced(names: readonly string[], own: string): Promise<number> {
    let bytes = 0;
    for (const name of ending(names, endings.lock)) {
      const entry = name.slice(0, -endings.lock.length);
      // One that has just come counts as an entry.
      if (entry === own || names.includes(entry)) continue;
      const note = await readClaim(this.entry(name));
      if (isLockNote(note)) bytes += note.totalBytes;
    }
    return bytes;
  }

  async #entries(names: readonly string[]): Promise<readonly Entry[]> {
    const found = await Promise.all(
      names.filter((name) => entryName.test(name)).map((name) => readEntry(this.entry(name))),
    );
    return found.filter((entry) => entry !== undefined);
  }

  /** Of the entry that is about to be fetched, all that lies about is abandoned. */
  async #removeAbandoned(names: readonly string[], own: string): Promise<void> {
    for (const name of ending(names, endings.unfinished)) {
      const [entry = ""] = name.split(".");
      if (entry === own || (await readClaim(this.lockFile(entry))) === undefined)
        await rm(this.entry(name), { recursive: true, force: true });
    }
    for (const name of ending(names, endings.draft)) {
      const status = await stat(this.entry(name)).catch(() => undefined);
      if (status && status.mtimeMs < Date.now() - abandonedMilliseconds)
        await rm(this.entry(name), { force: true });
    }
  }
}

/** The note of another process that fetches an entry. */
export function isLockNote(note: unknown): note is LockNote {
  return typeof note === "object" && note !== null && "totalBytes" in note;
}

interface Entry {
  readonly name: string;
  readonly bytes: number;
  readonly usedMilliseconds: number;
}

async function readEntry(folder: string): Promise<Entry | undefined> {
  const status = await stat(folder).catch(() => undefined);
  if (!status) return undefined;
  const manifest = await readManifest(folder);
  const bytes = (manifest?.files ?? []).reduce((total, [, size]) => total + size, 0);
  return { name: path.basename(folder), bytes, usedMilliseconds: status.mtimeMs };
}

function isUserNote(note: unknown): note is UserNote {
  return (
    typeof note === "object" && note !== null && "entries" in note && Array.isArray(note.entries)
  );
}

function ending(names: readonly string[], end: string): readonly string[] {
  return names.filter((name) => name.endsWith(end));
}

function sum(entries: readonly Entry[]): number {
  return entries.reduce((total, { bytes }) => total + bytes, 0);
}

function noRoom(bytes: number, limit: number): InferenceError {
  return new InferenceError(
    StatusCode.Unavailable,
    `model cache: given ${bytes} bytes more, expected at most ${Math.floor(limit)} bytes with what is in use; --model-cache-mb and the disk bound it`,
  );
}
