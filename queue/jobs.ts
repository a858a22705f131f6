/** What a job of a pool's queue asks for. */
export const jobNames = {
  /** Run the requests of an envelope. */
  infer: "infer",
  /** Start a version that nobody has started before, and tell what came of it. */
  open: "open",
} as const;

/** Up to this size requests travel in the data of their job: it is base64 there, which costs less than a key of their own. */
export const mostBundleBytes = 32 * 1024;

/** The job's data: small, because BullMQ keeps it as JSON, and readable in its tools. */
export interface InferJobData {
  readonly envelope: string;
  /** Key of the version that is to run them. */
  readonly version: string;
  /** Whom the replies go to. */
  readonly gateway: string;
  readonly model: string;
  readonly requests: number;
  /** When it has its turn: see `FairShares`. */
  readonly finish: number;
  /** Only this request of the envelope. */
  readonly index?: number;
  /** The requests, if they are small: as `encodeRequests` wrote them, in base64. */
  readonly bundle?: string;
}

export interface OpenJobData {
  readonly version: string;
  readonly model: string;
}

/**
 * BullMQ runs smaller numbers first, and jobs without one before all others: so each has one. Those that run requests have
 * one between these two, the largest that BullMQ takes among them, as `FairShares` says.
 */
export const jobPriorities = { open: 1, first: 2, last: 2 ** 21 - 1 } as const;

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
