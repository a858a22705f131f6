/** What a request waits for, in the order in which that comes; `running`: the version can answer, and does. */
export const progressStates = [
  "queued",
  "starting",
  "fetching",
  "loading",
  "warming",
  "running",
] as const;
export type ProgressState = (typeof progressStates)[number];

/** How far the start of a version is that a request waits for. */
export interface Progress {
  readonly state: ProgressState;
  /** While `fetching`: of the version's files. */
  readonly fetchedBytes?: number;
  readonly totalBytes?: number;
}

export type ProgressListener = (progress: Progress) => void;

/**
 * Hands on only what is news: several pool workers may be starting the same version, and whoever waits for the first of
 * them is not interested in those that are behind.
 */
export function onlyOnward(listener: ProgressListener): ProgressListener {
  let reached = -1;
  let reachedBytes = -1;
  return (progress) => {
    const rank = progressStates.indexOf(progress.state);
    const { fetchedBytes = 0 } = progress;
    if (rank < reached || (rank === reached && fetchedBytes <= reachedBytes)) return;
    reached = rank;
    reachedBytes = fetchedBytes;
    listener(progress);
  };
}
