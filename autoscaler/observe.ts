/** What a pool is asked to do, and who is there to do it. */
export interface PoolObservation {
  /** Unanswered requests, each once: those that wait and those that run. */
  readonly demand: number;
  /** Since the oldest unanswered request came; 0 when there is none. */
  readonly oldestAgeMilliseconds: number;
  /** Epoch milliseconds of the moment when the demand left zero; absent while it is zero. */
  readonly demandSince?: number;
  readonly poolWorkers: readonly ObservedPoolWorker[];
}

/** A pool worker as it announces itself. */
export interface ObservedPoolWorker {
  readonly id: string;
  readonly state: "starting" | "ready" | "draining";
  /** Requests that it works on. */
  readonly inFlight: number;
  /** Open sequences, which end with it: their next requests can run nowhere else. */
  readonly sequences: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

/** The autoscaler's eyes: tells how much there is to do, and the moment when a pool is needed. */
export interface Observer {
  /** Rejects when it cannot know: an unknown demand is not zero. */
  observe(pool: string): Promise<PoolObservation>;
  /** Calls back each time when a pool's demand leaves zero; the result ends that. */
  onDemand(listener: (pool: string) => void): () => void;
}

/** Requests in the hands of a pool's workers, those included whose gateway is gone. */
export function inFlightOf({ poolWorkers }: PoolObservation): number {
  return poolWorkers.reduce((sum, { inFlight }) => sum + inFlight, 0);
}

/** True for a pool that must not fall asleep now: also while nobody asks, for as long as sequences are open. */
export function isBusy(observation: PoolObservation): boolean {
  return observation.demand > 0 || inFlightOf(observation) > 0 || sequenceHolders(observation) > 0;
}

/** Pool workers that should stay because of the sequences that they have. */
export function sequenceHolders({ poolWorkers }: PoolObservation): number {
  return poolWorkers.filter(({ state, sequences }) => state !== "draining" && sequences > 0).length;
}
