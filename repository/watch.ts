import type { ModelRepository } from "./model-repository.ts";

/** What differs from the last look, by name. */
export interface RepositoryChanges {
  /** New, or with other files than before. */
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

export interface WatchListener {
  /** The next look waits until this is done. */
  onChanges(changes: RepositoryChanges): void | Promise<void>;
  onError(error: unknown): void;
}

/**
 * Looks at the repository again and again and tells what has changed, as `--model-control-mode=poll` wants it.
 * A model that is being copied changes at every look, so that a load that met half of it is repeated.
 */
export class RepositoryWatch {
  readonly #repository: ModelRepository;
  #seen: ReadonlyMap<string, string> = new Map();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(repository: ModelRepository) {
    this.#repository = repository;
  }

  /** Looks once; at the first look everything has changed. A look that fails has seen nothing. */
  async poll(): Promise<RepositoryChanges> {
    const before = this.#seen;
    const now = await this.#repository.fingerprints();
    this.#seen = now;
    return {
      changed: [...now.keys()].filter((name) => now.get(name) !== before.get(name)),
      removed: [...before.keys()].filter((name) => !now.has(name)),
    };
  }

  /** Looks every so many milliseconds, counted from the end of the last look. */
  start(intervalMilliseconds: number, listener: WatchListener): void {
    this.#timer = setTimeout(() => {
      void this.#look(listener).finally(() => {
        if (!this.#stopped) this.start(intervalMilliseconds, listener);
      });
    }, intervalMilliseconds);
    this.#timer.unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #look(listener: WatchListener): Promise<void> {
    try {
      const changes = await this.poll();
      if (this.#stopped || changes.changed.length + changes.removed.length === 0) return;
      await listener.onChanges(changes);
    } catch (error) {
      listener.onError(error);
    }
  }
}
