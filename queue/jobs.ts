/** What a job of a pool's queue asks for. */
export const jobNames = {
  /** Run the requests of an envelope. */
  infer: "infer",
  /** Start a version that nobody has started before, and tell what came of it. */
  open: "open",
} as const;

/** The job's data: small, because BullMQ keeps it as JSON, and readable in its tools. */
export interface InferJobData {
  readonly envelope: string;
  /** Key of the version that is to run them. */
  readonly version: string;
  /** Whom the replies go to. */
  readonly gateway: string;
  readonly model: string;
  readonly requests: number;
  /** Only this request of the envelope. */
  readonly index?: number;
}

export interface OpenJobData {
  readonly version: string;
  readonly model: string;
}

/** BullMQ runs smaller numbers first, and jobs without one before all others: so each has one. */
export const jobPriorities = { open: 1, infer: 1000 } as const;

/** A job fails only when its pool worker cannot reach Redis in the middle of it; it is begun again until it can. */
export const jobOptions = {
  removeOnComplete: true,
  removeOnFail: true,
  attempts: 1000,
  backoff: { type: "fixed", delay: 200 },
} as const;

/**
 * When a pool worker that died is noticed: its lock runs out, and the next look finds the job without one. Both are
 * short, because callers wait; the event loop of a pool worker never blocks for long, since models run in threads.
 */
export const stallTimes = { lockDuration: 4000, stalledInterval: 2000 } as const;

/** How often a job may lose its pool worker before its requests run one by one, and one of those before it is given up. */
export const stallsBeforeApart = 2;
