/** The life of one model version. */
export const ModelState = {
  Unknown: "UNKNOWN",
  Ready: "READY",
  Unavailable: "UNAVAILABLE",
  Loading: "LOADING",
  Unloading: "UNLOADING",
} as const;
export type ModelState = (typeof ModelState)[keyof typeof ModelState];

/** One line of the repository index; a model that was never loaded has a name only. */
export interface RepositoryIndexEntry {
  readonly name: string;
  readonly version?: string;
  readonly state?: ModelState;
  /** Why the version is not ready: "unloaded", or the error of its load. */
  readonly reason?: string;
}
