/** What decides which requests are traced, and how their traces are written. */
export interface TraceSettingValues {
  readonly level: TraceLevel;
  /** One of so many requests is traced; 0 traces those only that belong to a trace of their caller. */
  readonly rate: number;
  /** So many more are traced; -1 stands for no bound. */
  readonly count: number;
  /** So many traces go to each file; 0 puts all into one. */
  readonly logFrequency: number;
}

/** What is told of a request that is traced. */
export interface TraceLevel {
  readonly timestamps: boolean;
  readonly tensors: boolean;
}

export const traceOff: TraceLevel = { timestamps: false, tensors: false };

/** True when something is to be told. */
export function isOn({ timestamps, tensors }: TraceLevel): boolean {
  return timestamps || tensors;
}
