import {
  type ColdStartMarks,
  coldStartDurations,
  type ColdStartPhase,
  coldStartPhases,
} from "../protocol/cold-start.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { PoolCounters } from "./pool-counters.ts";

export interface ColdStartsOptions {
  readonly pool: string;
  readonly counters: PoolCounters;
  readonly log: Logger;
}

/** Tells the log and the metrics of every cold start of a pool worker, when the first request that waited is answered. */
export class ColdStarts {
  readonly #options: ColdStartsOptions;
  readonly #told = new WeakSet<ColdStartMarks>();

  constructor(options: ColdStartsOptions) {
    this.#options = options;
  }

  /** @param receivedAt when its gateway took the request; milliseconds since the epoch */
  answered(model: string, marks: ColdStartMarks, receivedAt: number): void {
    if (this.#told.has(marks)) return;
    this.#told.add(marks);
    const { pool, counters, log } = this.#options;
    const durations = coldStartDurations(marks, receivedAt, Date.now());
    counters.add("cold_starts_total", [model]);
    for (const phase of coldStartPhases)
      counters.observe("cold_start_duration_seconds", [phase, model], durations[phase] / 1000);
    const milliseconds = coldStartPhases.map((phase): [ColdStartPhase, number] => [
      phase,
      Math.round(durations[phase]),
    ]);
    const total = Math.round(coldStartPhases.reduce((sum, phase) => sum + durations[phase], 0));
    log.info("cold start", { pool, model, ...Object.fromEntries(milliseconds), total });
  }
}
