import type { KeyRecord } from "../../auth/key-record.ts";
import type { KeyStore } from "../../auth/key-store.ts";

/** Keys that a test holds in its hands: it says when the store is away, and whether it tells of changes. */
export class MemoryKeyStore implements KeyStore {
  readonly name = "memory";
  records: readonly KeyRecord[] = [];
  isAway = false;
  /** How often somebody looked. */
  looks = 0;
  /** Set to have looks wait for it. */
  gate: Promise<void> | undefined;
  #changed: (() => void) | undefined;
  #version = 0;

  async version(): Promise<string> {
    this.looks++;
    const version = String(this.#version);
    await this.gate;
    if (this.isAway) throw new Error("the store is away");
    return version;
  }

  async all(): Promise<readonly KeyRecord[]> {
    return this.records;
  }

  async replace(before: KeyRecord | undefined, after: KeyRecord | undefined): Promise<boolean> {
    const others = this.records.filter(({ id }) => id !== (before ?? after)?.id);
    this.records = after ? [...others, after] : others;
    this.#version++;
    return true;
  }

  watch(changed: () => void): () => void {
    this.#changed = changed;
    return () => (this.#changed = undefined);
  }

  tell(): void {
    this.#changed?.();
  }
}
