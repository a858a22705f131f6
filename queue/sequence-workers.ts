import { setTimeout as sleep } from "node:timers/promises";
import type { PoolChannel } from "./pool-channel.ts";
import type { PoolWorkerWord, Presence } from "./presence.ts";

/** A request on its way to the one pool worker that has its sequence. */
export interface WatchedRequest {
  readonly poolWorker: string;
  /** That pool worker was not there when last looked for. */
  missed: boolean;
  /** The sequence is still asked for. */
  renew(): void;
  /** Nobody will answer. */
  lost(): void;
}

/** Words are not older when a sequence is placed by them. */
const freshMilliseconds = 500;
/** While there is no pool worker. */
const lookMilliseconds = 250;

/**
 * Finds for each new sequence of a pool the pool worker that has fewest, and notices when one is gone that somebody waits
 * for.
 */
export class SequenceWorkers {
  readonly #presence: Presence;
  readonly #gateway: string;
  readonly #watched = new Set<WatchedRequest>();
  /** Sequences that were given to each since its last word. */
  readonly #given = new Map<string, number>();
  #words: readonly PoolWorkerWord[] = [];
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;
  #somebodyComes = Promise.withResolvers<void>();
  #tokens = 0;

  constructor(
    gateway: string,
    { presence, channel }: { readonly presence: Presence; readonly channel: PoolChannel },
  ) {
    this.#gateway = gateway;
    this.#presence = presence;
    channel.on("starting", () => {
      this.#readAt = -Infinity;
      this.#somebodyComes.resolve();
      this.#somebodyComes = Promise.withResolvers();
    });
  }

  /** For a START: none in any gateway has the same. */
  newToken(): string {
    return `${this.#gateway}-${(this.#tokens++).toString(36)}`;
  }

  /**
   * The pool worker for a new sequence; waits for one while there is none.
   *
   * @param version its key: among equals those are better that have loaded it
   * @param isWanted whether somebody still waits; when not, the result may be undefined
   */
  async choose(version: string, isWanted: () => boolean): Promise<string | undefined> {
    while (isWanted()) {
      await this.#look();
      const best = this.#best(version);
      if (best !== undefined) {
        this.#given.set(best, (this.#given.get(best) ?? 0) + 1);
        return best;
      }
      await Promise.race([this.#somebodyComes.promise, sleep(lookMilliseconds)]);
    }
    return undefined;
  }

  watch(request: WatchedRequest): void {
    this.#watched.add(request);
  }

  unwatch(request: WatchedRequest): void {
    this.#watched.delete(request);
  }

  /** To be called every so often: a pool worker is gone when it is missed twice, so that its last replies come first. */
  async tend(): Promise<void> {
    if (this.#watched.size === 0) return;
    await this.#read();
    const present = new Set(this.#words.map(({ id }) => id));
    for (const request of this.#watched) {
      const isHere = present.has(request.poolWorker);
      if (!isHere && request.missed) request.lost();
      else request.renew();
      request.missed = !isHere;
    }
  }

  async #look(): Promise<void> {
    if (performance.now() - this.#readAt > freshMilliseconds) await this.#read();
  }

  /** Those who ask meanwhile share the answer. */
  #read(): Promise<void> {
    this.#reading ??= this.#readWords().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readWords(): Promise<void> {
    this.#words = await this.#presence.present(Date.now());
    this.#readAt = performance.now();
    this.#given.clear();
  }

  #best(version: string): string | undefined {
    const ready = this.#words.filter(({ state }) => state === "ready");
    // The line of one that is starting is read as soon as it is there.
    const able = ready.length > 0 ? ready : this.#words.filter(({ state }) => state === "starting");
    let best: PoolWorkerWord | undefined;
    let least = Infinity;
    for (const word of able) {
      const isLoaded = word.resident.includes(version);
      const load = word.sequences + (this.#given.get(word.id) ?? 0) + (isLoaded ? 0 : 0.5);
      if (load < least) [best, least] = [word, load];
    }
    return best?.id;
  }
}
