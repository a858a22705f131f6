import type { ResponseCache } from "../../cache/response-cache.ts";
import { sha256 } from "../../cache/sha256.ts";
import type { Clock } from "../clock.ts";
import type { RunningVersion, VersionSource } from "../running-version.ts";
import { CachingScheduler } from "./caching-scheduler.ts";
import type { Flight } from "./flight.ts";

/**
 * Puts a cache in front of the versions whose config wants it. Whoever hands them requests need not know: clients are
 * answered from it, and the steps of ensembles.
 */
export class ResponseCaching {
  readonly #cache: ResponseCache;
  readonly #clock: Clock;
  readonly #readContents: boolean;
  readonly #flights = new Map<string, Flight>();
  readonly #digests = new WeakMap<RunningVersion, string>();

  /** @param keptElsewhere others keep answers by the same digests, or show them to who does */
  constructor(cache: ResponseCache, clock: Clock, keptElsewhere = cache.isShared) {
    this.#cache = cache;
    this.#clock = clock;
    this.#readContents = keptElsewhere;
  }

  /** The version as it is to be asked; to be called for each one that starts, because an ensemble's digest is that of its parts. */
  async cached(source: VersionSource, running: RunningVersion): Promise<RunningVersion> {
    const digest = await this.#digest(source, running).catch(async (error: unknown) => {
      await running.close();
      throw error;
    });
    const enabled = running.model.config.responseCache?.enable === true;
    const version = enabled ? this.#withCache(running, digest) : running;
    this.#digests.set(version, digest);
    return version;
  }

  /** Forgets all answers of a model, in this process and in what it shares with others. */
  async flush(modelName: string): Promise<void> {
    this.forget(modelName);
    await this.#cache.flush(modelName);
  }

  /** Forgets what this process has; who runs now is neither joined nor kept any more. */
  forget(modelName: string): void {
    for (const [key, { leader }] of this.#flights)
      if (leader.request.model.name === modelName) this.#flights.delete(key);
    this.#cache.forget(modelName);
  }

  /** The same for every model. */
  forgetAll(): void {
    this.#flights.clear();
    this.#cache.forgetAll();
  }

  /** Equal ones: the same files with the same config, those of an ensemble's parts included. */
  async #digest(source: VersionSource, { model, members = [] }: RunningVersion): Promise<string> {
    // Where others may find the answers, times and sizes of files are not enough.
    const contents = this.#readContents ? await source.digest?.() : undefined;
    const parts = members.map((member) => this.#digests.get(member));
    return sha256([JSON.stringify([source.fingerprint, contents, model.config, parts])]);
  }

  #withCache(running: RunningVersion, digest: string): RunningVersion {
    const { model, statistics, members } = running;
    statistics.cacheEnabled();
    const scheduler = new CachingScheduler({
      cache: this.#cache,
      flights: this.#flights,
      clock: this.#clock,
      scheduler: running.scheduler,
      statistics,
      digest,
    });
    return {
      model,
      scheduler,
      statistics,
      answersDigest: digest,
      ...(members && { members }),
      ...(running.progress && { progress: running.progress.bind(running) }),
      get healthy() {
        return running.healthy;
      },
      async close() {
        await scheduler.stop();
        await running.close();
      },
    };
  }
}
