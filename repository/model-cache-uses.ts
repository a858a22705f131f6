import type { Claim } from "./model-cache-claim.ts";
import type { ModelCacheFolder, UserNote } from "./model-cache-folder.ts";

/** What this process uses of a cache, as a file that the other processes read before they remove something. */
export class ModelCacheUses {
  readonly #folder: ModelCacheFolder;
  readonly #counts = new Map<string, number>();
  #claim: Claim<UserNote> | undefined;
  #publishing: Promise<void> = Promise.resolve();

  constructor(folder: ModelCacheFolder) {
    this.#folder = folder;
  }

  /** Resolves when the others can know. Every call is ended by one {@link remove}. */
  async add(name: string): Promise<void> {
    this.#count(name, 1);
    await this.#publish();
  }

  async remove(name: string): Promise<void> {
    this.#count(name, -1);
    if (!this.#counts.has(name)) await this.#publish();
  }

  #count(name: string, change: number): void {
    const count = (this.#counts.get(name) ?? 0) + change;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }

  #publish(): Promise<void> {
    this.#publishing = this.#publishing.catch(() => {}).then(() => this.#write());
    return this.#publishing;
  }

  async #write(): Promise<void> {
    const note = { entries: [...this.#counts.keys()] };
    if (note.entries.length > 0 && this.#claim && (await isTold(this.#claim, note))) return;
    await this.#claim?.release();
    this.#claim = note.entries.length > 0 ? await this.#folder.enlist(note) : undefined;
  }
}

/** False when somebody has emptied the folder. */
function isTold(claim: Claim<UserNote>, note: UserNote): Promise<boolean> {
  return claim.note(note).then(
    () => true,
    () => false,
  );
}
