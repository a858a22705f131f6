import { type RepositoryIndexEntry, ModelState } from "../../protocol/repository-index.ts";
import type { RunningVersion } from "../running-version.ts";

/** A version that serves, and what it was made of. */
export interface LoadedVersion {
  readonly version: number;
  /** Of the files it was loaded from. */
  readonly fingerprint: string;
  readonly running: RunningVersion;
}

/** Answers what a retired version has taken, then frees it; never rejects. */
export type Retire = (loaded: LoadedVersion) => Promise<void>;

interface VersionEntry {
  readonly version: number;
  state: ModelState;
  reason?: string;
  loaded?: LoadedVersion;
}

const unloaded = "unloaded";

/**
 * What is known of one model: the state of each version, and which of them answer requests.
 * It changes in single steps, each of them whole: a request finds the old versions or the new ones, never neither.
 */
export class ModelRecord {
  readonly name: string;
  readonly #retire: Retire;
  readonly #entries = new Map<number, VersionEntry>();
  /** By version as text, and the highest under "". */
  #ready: ReadonlyMap<string, RunningVersion> = new Map();
  #reason: string | undefined;

  constructor(name: string, retire: Retire) {
    this.name = name;
    this.#retire = retire;
  }

  /** The version that answers; "" stands for the highest. */
  ready(version: string): RunningVersion | undefined {
    return this.#ready.get(version);
  }

  /** True for a version that was seen at all, in whatever state. */
  knows(version: string): boolean {
    return this.#entries.has(Number(version));
  }

  /** Those that answer, ascending. */
  serving(): readonly LoadedVersion[] {
    return this.#sorted().flatMap(({ state, loaded }) =>
      state === ModelState.Ready && loaded ? [loaded] : [],
    );
  }

  /** True unless a version that should answer does not. */
  get healthy(): boolean {
    const versions = [...this.#entries.values()];
    if (this.#reason !== undefined && this.#ready.size === 0) return false;
    return versions.every(
      ({ state, reason }) =>
        state === ModelState.Ready || state === ModelState.Unloading || reason === unloaded,
    );
  }

  /** True when no version serves, loads or ends. */
  get dormant(): boolean {
    return [...this.#entries.values()].every(({ state }) => state === ModelState.Unavailable);
  }

  /** Some versions are about to load; one that serves goes on as it is. */
  loading(versions: readonly number[]): void {
    this.#reason = undefined;
    for (const version of versions)
      if (this.#entries.get(version)?.state !== ModelState.Ready)
        this.#entries.set(version, { version, state: ModelState.Loading });
  }

  /** The load as a whole came to nothing before any version was tried. */
  refused(reason: string): void {
    this.#reason = reason;
  }

  /** A version could not be loaded; one that serves goes on, with the reason beside it. */
  failed(version: number, reason: string): void {
    const entry = this.#entries.get(version);
    if (entry?.state === ModelState.Ready) entry.reason = reason;
    else this.#entries.set(version, { version, state: ModelState.Unavailable, reason });
  }

  /** A version that did load ends unused, because another of the same load failed. */
  async abandon(loaded: LoadedVersion): Promise<void> {
    const { version } = loaded;
    if (this.#entries.get(version)?.state !== ModelState.Ready)
      this.#entries.set(version, { version, state: ModelState.Unloading, loaded });
    await this.#end(loaded);
  }

  /** From now on exactly these answer. Resolves when those that did before have finished what they had. */
  async serve(next: readonly LoadedVersion[]): Promise<void> {
    const before = this.serving();
    this.#reason = undefined;
    for (const loaded of next)
      this.#entries.set(loaded.version, {
        version: loaded.version,
        state: ModelState.Ready,
        loaded,
      });
    const kept = new Set(next);
    const wanted = new Set(next.map(({ version }) => version));
    for (const entry of this.#entries.values()) if (!wanted.has(entry.version)) this.#leave(entry);
    this.#publish();
    const retired = before.filter((loaded) => !kept.has(loaded));
    await Promise.all(retired.map((loaded) => this.#end(loaded)));
  }

  /** Its lines in the repository index, or none when nothing is known of it. */
  index(): readonly RepositoryIndexEntry[] {
    const lines = this.#sorted().map(({ version, state, reason }) => ({
      name: this.name,
      version: String(version),
      state,
      ...(reason !== undefined && { reason }),
    }));
    if (this.#reason === undefined) return lines;
    const reason = this.#reason;
    if (this.#ready.size === 0)
      return [...lines, { name: this.name, state: ModelState.Unavailable, reason }];
    return lines.map((line) => (line.state === ModelState.Ready ? { ...line, reason } : line));
  }

  #sorted(): readonly VersionEntry[] {
    return [...this.#entries.values()].toSorted((a, b) => a.version - b.version);
  }

  #leave(entry: VersionEntry): void {
    delete entry.reason;
    if (entry.state === ModelState.Ready) {
      entry.state = ModelState.Unloading;
    } else if (entry.state !== ModelState.Unloading) {
      entry.state = ModelState.Unavailable;
      entry.reason = unloaded;
    }
  }

  #publish(): void {
    const serving = this.serving();
    const ready = new Map(serving.map(({ version, running }) => [String(version), running]));
    const highest = serving.at(-1);
    if (highest) ready.set("", highest.running);
    this.#ready = ready;
  }

  async #end(loaded: LoadedVersion): Promise<void> {
    await this.#retire(loaded);
    const { version } = loaded;
    // Another load may have taken its place meanwhile.
    if (this.#entries.get(version)?.loaded === loaded)
      this.#entries.set(version, { version, state: ModelState.Unavailable, reason: unloaded });
  }
}
