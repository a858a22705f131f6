/** Why and since when another number of pool workers is wanted. */
export interface ScaleReason {
  /** Epoch milliseconds of the moment when the demand was seen: a cold start begins here. */
  readonly demandSeenAt: number;
  /** Epoch milliseconds. */
  readonly decidedAt: number;
  /** Requests in the hands of each pool worker by its id: those with the fewest are stopped first. */
  readonly inFlight?: ReadonlyMap<string, number>;
}

/** The autoscaler's hands: makes the processes of one pool more or fewer. */
export interface Scaler {
  /** Processes that are there or on their way, without those that were asked to end. */
  size(): number;
  /** Resolves when the change is under way; of several calls the last one wins. */
  scaleTo(count: number, reason: ScaleReason): Promise<void>;
  /** Lets go of what the scaler holds: processes of its own end, at the latest when the signal comes. */
  close(signal: AbortSignal): Promise<void>;
}
