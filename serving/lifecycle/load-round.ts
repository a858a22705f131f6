/** Loads that belong together: each model is loaded once, however many ensembles it is a part of. */
export class LoadRound {
  readonly #loads = new Map<string, Promise<void>>();
  readonly #members = new Map<string, readonly string[]>();

  /** Starts the load, or gives the one that was started. */
  once(name: string, load: () => Promise<void>): Promise<void> {
    let started = this.#loads.get(name);
    if (!started) this.#loads.set(name, (started = load()));
    return started;
  }

  /**
   * An ensemble is about to wait for the loads of its members.
   *
   * @returns one that waits for this ensemble in turn, so that both would wait for ever
   */
  waits(ensemble: string, members: readonly string[]): string | undefined {
    this.#members.set(ensemble, members);
    const seen = new Set([ensemble]);
    for (const name of seen) {
      const ofName = this.#members.get(name) ?? [];
      if (ofName.includes(ensemble)) return name;
      for (const member of ofName) seen.add(member);
    }
    return undefined;
  }
}
