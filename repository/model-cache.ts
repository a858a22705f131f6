import { mkdir, rename, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { Claim, readClaim } from "./model-cache-claim.ts";
import {
  filesFolder,
  isWhole,
  discardEntry,
  syncEntry,
  touchEntry,
  writeManifest,
} from "./model-cache-entry.ts";
import { isLockNote, type LockNote, ModelCacheFolder } from "./model-cache-folder.ts";
import { ModelCacheUses } from "./model-cache-uses.ts";
import type { FetchOptions } from "./model-store.ts";
import { SharedFetch, type Tell } from "./shared-fetch.ts";

/** Something that the cache shall have. */
export interface WantedEntry {
  /** 64 hexadecimal digits: equal for equal files. */
  readonly name: string;
  readonly totalBytes: number;
  /** Writes the files into a folder that is there and empty, and tells how many bytes it has. */
  fill(folder: string, report: (fetchedBytes: number) => void, signal: AbortSignal): Promise<void>;
}

/** Files of an entry, which stay where they are until they are released, once. */
export interface CachedFiles {
  readonly folder: string;
  release(): Promise<void>;
}

/** What telemetry reads. */
export interface ModelCacheCounters {
  hits: number;
  misses: number;
  fetchedBytes: number;
  evictions: number;
  /** Of all entries, as this process saw them last. */
  residentBytes: number;
}

const waitMilliseconds = 25;
const tellMilliseconds = 100;

/**
 * Keeps files that were fetched from afar on local disk, for all processes of this user: many who want the same wait for
 * one download, an entry appears whole or not at all, and over the bound what was used longest ago goes first.
 */
export class ModelCache {
  readonly counters: ModelCacheCounters = {
    hits: 0,
    misses: 0,
    fetchedBytes: 0,
    evictions: 0,
    residentBytes: 0,
  };
  readonly #folder: ModelCacheFolder;
  readonly #fetches = new Map<string, SharedFetch>();
  readonly #uses: ModelCacheUses;

  constructor(folder: string, maxBytes: number) {
    this.#folder = new ModelCacheFolder(folder, maxBytes);
    this.#uses = new ModelCacheUses(this.#folder);
  }

  /** Resolves when the files are there; rejects when they cannot be brought, or the signal says that nobody waits. */
  async acquire(wanted: WantedEntry, options: FetchOptions = {}): Promise<CachedFiles> {
    options.signal?.throwIfAborted();
    try {
      await this.#uses.add(wanted.name);
      options.signal?.throwIfAborted();
      await this.#shared(wanted).wait(options);
    } catch (error) {
      await this.#uses.remove(wanted.name).catch(() => {});
      throw options.signal?.aborted ? error : cacheFailure(error);
    }
    return this.#used(wanted.name);
  }

  /** An entry that is there already; undefined when it is not. */
  async kept(name: string): Promise<CachedFiles | undefined> {
    const entry = this.#folder.entry(name);
    try {
      await this.#uses.add(name);
      if (await this.#isWhole(entry)) {
        await touchEntry(entry);
        this.counters.hits++;
        return this.#used(name);
      }
    } catch {
      // A cache that cannot be read tells so to those who want something put there.
    }
    await this.#uses.remove(name).catch(() => {});
    return undefined;
  }

  #used(name: string): CachedFiles {
    return {
      folder: filesFolder(this.#folder.entry(name)),
      release: () => this.#uses.remove(name),
    };
  }

  /** Once it is seen to be whole while this process is known to use it, no other process removes it. */
  #isWhole(entry: string): Promise<boolean> {
    return this.#folder.alone(() => isWhole(entry));
  }

  #shared(wanted: WantedEntry): SharedFetch {
    const running = this.#fetches.get(wanted.name);
    if (running) return running;
    const forget = (): void => {
      if (this.#fetches.get(wanted.name) === fetch) this.#fetches.delete(wanted.name);
    };
    const fetch: SharedFetch = new SharedFetch(
      (signal, tell) => this.#find(wanted, signal, tell),
      forget,
    );
    this.#fetches.set(wanted.name, fetch);
    return fetch;
  }

  async #find(wanted: WantedEntry, signal: AbortSignal, tell: Tell): Promise<void> {
    const entry = this.#folder.entry(wanted.name);
    if (await this.#isWhole(entry)) {
      this.counters.hits++;
    } else {
      this.counters.misses++;
      while (!(await this.#bring(wanted, signal, tell)));
    }
    await touchEntry(entry);
    this.counters.residentBytes = await this.#folder.residentBytes();
  }

  /** Fetches the entry, or waits for the process that does; false when that one gave up. */
  async #bring(wanted: WantedEntry, signal: AbortSignal, tell: Tell): Promise<boolean> {
    const { name, totalBytes } = wanted;
    const lock = await Claim.take<LockNote>(this.#folder.lockFile(name), {
      fetchedBytes: 0,
      totalBytes,
    });
    if (!lock) {
      await this.#watch(name, signal, tell);
      return this.#isWhole(this.#folder.entry(name));
    }
    try {
      // It may have come between the look and the lock.
      if (await isWhole(this.#folder.entry(name))) return true;
      this.counters.evictions += await this.#folder.makeRoom(name, totalBytes);
      await this.#fetch(wanted, signal, telling(lock, tell));
      return true;
    } finally {
      await lock.release();
    }
  }

  async #fetch(wanted: WantedEntry, signal: AbortSignal, tell: Tell): Promise<void> {
    const { name, totalBytes } = wanted;
    const draft = this.#folder.unfinished(name);
    const entry = this.#folder.entry(name);
    let before = 0;
    const report = (fetchedBytes: number): void => {
      this.counters.fetchedBytes += Math.max(0, fetchedBytes - before);
      before = fetchedBytes;
      tell({ fetchedBytes, totalBytes });
    };
    try {
      await mkdir(filesFolder(draft), { recursive: true, mode: 0o700 });
      await wanted.fill(filesFolder(draft), report, signal);
      await writeManifest(draft);
      // What is there is not whole.
      await discardEntry(entry, this.#folder.unfinished(name));
      await rename(draft, entry);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
    // Nobody has to wait for the disk. An entry that is gone by then needs none of this.
    void syncEntry(entry).catch(() => {});
  }

  /** Waits until nobody who is alive fetches the entry. */
  async #watch(name: string, signal: AbortSignal, tell: Tell): Promise<void> {
    for (;;) {
      const note = await readClaim(this.#folder.lockFile(name));
      if (note === undefined) return;
      if (isLockNote(note)) tell(note);
      await sleep(waitMilliseconds, undefined, { signal });
    }
  }
}

/** Tells the processes that wait, too, though not of every byte. */
function telling(lock: Claim<LockNote>, tell: Tell): Tell {
  let last = performance.now();
  return (progress) => {
    tell(progress);
    const now = performance.now();
    if (now - last < tellMilliseconds) return;
    last = now;
    lock.note(progress).catch(() => {});
  };
}

/** File system errors carry paths: they become a text that has none. */
function cacheFailure(cause: unknown): unknown {
  if (!(cause instanceof Error) || !("syscall" in cause) || !("code" in cause)) return cause;
  const text = `model cache: cannot be written (${String(cause.code)})`;
  return new InferenceError(StatusCode.Internal, text, { cause });
}
