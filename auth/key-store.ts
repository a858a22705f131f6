import type { KeyRecord } from "./key-record.ts";

/** More keys than this are refused: all processes have all of them in memory. */
export const mostKeys = 10_000;

/** Where the records of keys are kept, for all processes that ask for keys. */
export interface KeyStore {
  /** As the log names it. */
  readonly name: string;
  /** Another text whenever a key is another. */
  version(): Promise<string>;
  /** Every record; rejects when one of them cannot be read. */
  all(): Promise<readonly KeyRecord[]>;
  /**
   * Puts a record in the place of another, unless somebody else did so meanwhile.
   *
   * @param before undefined where there is none yet
   * @param after undefined to remove it
   * @returns whether it did
   */
  replace(before: KeyRecord | undefined, after: KeyRecord | undefined): Promise<boolean>;
  /** Calls back when a key may have changed, where the store can tell; gives what ends that. */
  watch?(changed: () => void): () => void;
}
