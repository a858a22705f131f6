/** Runs the tasks of one key after another, so that a load and an unload of the same model never cross. */
export class SerialTasks {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Starts the task when all earlier ones of the key are done, however they ended. */
  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const forget = (): void => {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    };
    const done = (this.#last.get(key) ?? Promise.resolve()).then(task);
    const settled: Promise<void> = done.then(forget, forget);
    this.#last.set(key, settled);
    return done;
  }
}
