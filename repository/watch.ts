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
  /** Ends the pause between two looks. */
  #wake: (() => void) | undefined;
  /** Told of a change since the last look began. */
  #told = false;
  #stopped = false;
  #stopListening: (() => void) | undefined;

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

  /** Looks every so many milliseconds, counted from the end of the last look, and when the repository is told of a change. */
  start(intervalMilliseconds: number, listener: WatchListener): void {
    this.#stopListening = this.#repository.onToldChanged(() => {
      this.#told = true;
      this.#wake?.();
    });
    void this.#lookUntilStopped(intervalMilliseconds, listener);
  }

  stop(): void {
    this.#stopped = true;
    this.#stopListening?.();
    this.#wake?.();
  }

  async #lookUntilStopped(intervalMilliseconds: number, listener: WatchListener): Promise<void> {
    for (;;) {
      await this.#pause(intervalMilliseconds);
      if (this.#stopped) return;
      this.#told = false;
      await this.#look(listener);
    }
  }

  /** None after a look that may have missed what it was told of. */
  async #pause(milliseconds: number): Promise<void> {
    if (this.#told || this.#stopped) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds).unref();
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
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
