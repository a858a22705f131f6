import { setImmediate } from "node:timers/promises";
import type { CountedVersion } from "../serving/running-version.ts";

/** A version to be started, as far as the budget goes. */
export interface Startable {
  /** What it will take of the budget. */
  readonly bytes: number;
  start(): Promise<CountedVersion>;
}

export interface ResidentOptions {
  /** What all loaded versions may take together; a single one may take more. */
  readonly budgetBytes: number;
  /** Finds out what a key stands for; rejects with an InferenceError when nobody knows. */
  readonly find: (key: string) => Promise<Startable>;
}

interface Resident {
  bytes: number;
  readonly starting: Promise<CountedVersion>;
  version?: CountedVersion;
  /** Nobody asks for it any more. */
  retired: boolean;
}

/**
 * The versions that a pool worker has loaded: each when it is first asked for, as many as the budget holds. Those that
 * were used longest ago make room, and answer what they have before they go.
 */
export class ResidentVersions {
  readonly #options: ResidentOptions;
  /** In the order of their last use. */
  readonly #residents = new Map<string, Resident>();
  readonly #loaded = new Map<string, CountedVersion>();

  constructor(options: ResidentOptions) {
    this.#options = options;
  }

  /** Those that are loaded, by key. */
  loaded(): ReadonlyMap<string, CountedVersion> {
    return this.#loaded;
  }

  /** What all versions take of the budget, those that are being started included. */
  get bytes(): number {
    return [...this.#residents.values()].reduce((sum, one) => sum + one.bytes, 0);
  }

  /** The version of a key; started if it is not there. Callers that ask meanwhile share the start, and its failure. */
  get(key: string): Promise<CountedVersion> {
    const known = this.#residents.get(key);
    if (!known) return this.#start(key);
    known.retired = false;
    this.#residents.delete(key);
    this.#residents.set(key, known);
    return known.starting;
  }

  /** Nobody asks for it any more: it goes when it has answered what it has. */
  retire(key: string): void {
    const resident = this.#residents.get(key);
    if (resident) resident.retired = true;
    void this.#evict(key);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#residents.keys()].map((key) => this.#evict(key)));
  }

  #start(key: string): Promise<CountedVersion> {
    const starting = this.#load(key);
    this.#residents.set(key, { bytes: 0, starting, retired: false });
    starting.catch(() => this.#residents.delete(key));
    return starting;
  }

  async #load(key: string): Promise<CountedVersion> {
    const startable = await this.#options.find(key);
    const resident = this.#residents.get(key);
    if (resident) resident.bytes = startable.bytes;
    await this.#makeRoom(key);
    const version = await startable.start();
    if (resident) resident.version = version;
    this.#loaded.set(key, version);
    if (resident?.retired) void this.#evict(key);
    // Another may have started meanwhile, which could not make room before it was there.
    else void this.#makeRoom(key);
    return version;
  }

  async #makeRoom(forKey: string): Promise<void> {
    const others = [...this.#residents].filter(([key]) => key !== forKey);
    let bytes = [...this.#residents.values()].reduce((sum, one) => sum + one.bytes, 0);
    const leaving: Promise<void>[] = [];
    for (const [key, resident] of others) {
      if (bytes <= this.#options.budgetBytes) break;
      if (!resident.version) continue;
      bytes -= resident.bytes;
      leaving.push(this.#evict(key));
    }
    await Promise.all(leaving);
  }

  async #evict(key: string): Promise<void> {
    const version = this.#residents.get(key)?.version;
    if (!version) return;
    this.#residents.delete(key);
    this.#loaded.delete(key);
    // Those that were given it in this turn hand over their requests first.
    await setImmediate();
    await version.close();
  }
}
