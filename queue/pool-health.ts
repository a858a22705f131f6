import type { Presence } from "./presence.ts";

/** Knows which versions nobody can run now, although somebody has them: by the words of the pool workers. */
export class PoolHealth {
  readonly #presence: Presence;
  #down: ReadonlySet<string> = new Set();

  constructor(presence: Presence) {
    this.#presence = presence;
  }

  /** False while every pool worker that has loaded the version says that it cannot run it. */
  isHealthy(version: string): boolean {
    return !this.#down.has(version);
  }

  /** To be called every so often. */
  async tend(): Promise<void> {
    const words = await this.#presence.present(Date.now());
    const down = new Set(words.flatMap(({ down: own = [] }) => own));
    for (const { resident, down: own = [] } of words)
      for (const version of resident) if (!own.includes(version)) down.delete(version);
    this.#down = down;
  }
}
