export interface ActivationsOptions {
  /** Files of a model come one by one: it is activated when none has come for so long. */
  readonly quietMilliseconds: number;
  readonly activate: (model: string) => Promise<readonly string[]>;
  readonly onDone: (model: string, versions: readonly string[]) => void;
  readonly onError: (model: string, error: unknown) => void;
}

interface Wanted {
  timer: NodeJS.Timeout | undefined;
  running: boolean;
}

/** So many models may wait; the others are told so. */
const maxModels = 1000;

/** Activates models soon after their last file has come, each one after the other of its own. */
export class Activations {
  readonly #options: ActivationsOptions;
  readonly #wanted = new Map<string, Wanted>();

  constructor(options: ActivationsOptions) {
    this.#options = options;
  }

  /** False where too many wait. */
  want(model: string): boolean {
    const known = this.#wanted.get(model);
    if (!known && this.#wanted.size >= maxModels) return false;
    const wanted = known ?? { timer: undefined, running: false };
    this.#wanted.set(model, wanted);
    clearTimeout(wanted.timer);
    wanted.timer = setTimeout(() => void this.#run(model, wanted), this.#options.quietMilliseconds);
    return true;
  }

  close(): void {
    for (const { timer } of this.#wanted.values()) clearTimeout(timer);
    this.#wanted.clear();
  }

  async #run(model: string, wanted: Wanted): Promise<void> {
    // What came while it was activated is looked at after another pause.
    if (wanted.running) return void this.want(model);
    wanted.timer = undefined;
    wanted.running = true;
    const { activate, onDone, onError } = this.#options;
    try {
      onDone(model, await activate(model));
    } catch (error) {
      onError(model, error);
    }
    wanted.running = false;
    if (wanted.timer === undefined) this.#wanted.delete(model);
  }
}
