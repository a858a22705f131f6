import type { Logger } from "../telemetry/logger.ts";
import { afterExit, type WorkerExit } from "./crash-backoff.ts";
import { decide, demandSeen, initialState, scalingReasons } from "./decide.ts";
import type { ScalingDecision, ScalingPolicy, ScalingReason, ScalingState } from "./decide.ts";
import type { Observer, PoolObservation } from "./observe.ts";
import { oneAtATime } from "./one-at-a-time.ts";
import type { Scaler } from "./scaler.ts";
import { TroubleLog } from "./trouble-log.ts";

export interface ScaledPool {
  readonly name: string;
  readonly policy: ScalingPolicy;
  readonly scaler: Scaler;
}

export interface PoolLoopOptions {
  readonly observer: Observer;
  /** Whether this autoscaler is the one that may scale; the others only watch. */
  readonly leads: () => boolean;
  readonly log: Logger;
  /** Epoch milliseconds that never go back; the machine's by default. */
  readonly now?: () => number;
}

/** How the scaling of a pool stands, for metrics. */
export interface PoolScaling {
  readonly pool: string;
  /** Processes that are there or on their way. */
  readonly existingWorkers: number;
  /** What the last decision asked for. */
  readonly wantedWorkers: number;
  /** The newest; absent until there is one. */
  readonly observation?: PoolObservation;
  /** Decisions by their reason since the start, those to change nothing included. */
  readonly decisions: Readonly<Record<ScalingReason, number>>;
}

/** Observes one pool, decides, and has it scaled; whenever it is asked to, one look at a time. */
export class PoolLoop {
  /** Looks now; resolves when what it led to is under way. */
  readonly look: () => Promise<void>;
  readonly #pool: ScaledPool;
  readonly #options: PoolLoopOptions;
  readonly #now: () => number;
  readonly #observing: TroubleLog;
  readonly #scaling: TroubleLog;
  readonly #decisions = noDecisions();
  #state: ScalingState;
  #observation: PoolObservation | undefined;
  #wantedWorkers = 0;
  /** Epoch milliseconds of the last worker's end: nobody could be missed before. */
  #exitedAt = 0;
  #closed = false;

  constructor(pool: ScaledPool, options: PoolLoopOptions) {
    this.look = oneAtATime(() => this.#look());
    this.#pool = pool;
    this.#options = options;
    this.#now = options.now ?? (() => performance.timeOrigin + performance.now());
    this.#state = initialState(this.#now());
    this.#observing = new TroubleLog(options.log, `pool '${pool.name}': observing its demand`);
    this.#scaling = new TroubleLog(options.log, `pool '${pool.name}': scaling it`);
  }

  /** Demand has left zero. */
  pushed(): void {
    this.#state = demandSeen(this.#state, this.#now());
    // Demand leaves zero after every pause: while there are workers, the interval is enough.
    if (this.#pool.scaler.size() === 0 && this.#options.leads()) void this.look();
  }

  /** A worker's process has ended. */
  exited(exit: WorkerExit): void {
    if (exit.expected) return;
    this.#exitedAt = this.#now();
    this.#state = { ...this.#state, crashes: afterExit(this.#state.crashes, exit, this.#exitedAt) };
    const { id, code, signal, lifetimeMilliseconds, error: err } = exit;
    const fields = { pool: this.#pool.name, id, code, signal, lifetimeMilliseconds, err };
    this.#options.log.warn(`pool '${this.#pool.name}': a pool worker has ended by itself`, fields);
    void this.look();
  }

  status(): PoolScaling {
    return {
      pool: this.#pool.name,
      existingWorkers: this.#pool.scaler.size(),
      wantedWorkers: this.#wantedWorkers,
      ...(this.#observation && { observation: this.#observation }),
      decisions: { ...this.#decisions },
    };
  }

  close(): void {
    this.#closed = true;
  }

  async #look(): Promise<void> {
    const observation = await this.#observe();
    // Without an observation the pool stays as it is: Redis may be away, and the demand is not.
    if (!observation || this.#closed) return;
    this.#observation = observation;
    const { policy, scaler } = this.#pool;
    const decidedAt = this.#now();
    const existingWorkers = scaler.size();
    const seen = { ...observation, existingWorkers };
    const { decision, state } = decide(policy, seen, this.#state, decidedAt);
    this.#state = state;
    this.#wantedWorkers = decision.workers;
    if (!this.#options.leads()) return;
    this.#decisions[decision.reason]++;
    if (decision.workers !== existingWorkers) await this.#scale(decision, observation, decidedAt);
  }

  async #observe(): Promise<PoolObservation | undefined> {
    try {
      const observation = await this.#options.observer.observe(this.#pool.name);
      this.#observing.succeeded();
      return observation;
    } catch (error) {
      this.#observing.failed(error);
      return undefined;
    }
  }

  async #scale(
    { workers, reason }: ScalingDecision,
    { demand, demandSince = Infinity, poolWorkers }: PoolObservation,
    decidedAt: number,
  ): Promise<void> {
    const { name, scaler } = this.#pool;
    const from = scaler.size();
    const message = `pool '${name}': from ${from} to ${workers} pool workers, because ${scalingReasons[reason]}`;
    this.#options.log.info(message, { pool: name, from, to: workers, reason, demand });
    const since = from === 0 ? Math.max(demandSince, this.#exitedAt) : decidedAt;
    const inFlight = new Map(
      poolWorkers.map((worker) => [worker.id, worker.inFlight + worker.sequences]),
    );
    try {
      const demandSeenAt = Math.min(since, decidedAt);
      await scaler.scaleTo(workers, { demandSeenAt, decidedAt, inFlight });
      this.#scaling.succeeded();
    } catch (error) {
      this.#scaling.failed(error);
    }
  }
}

function noDecisions(): Record<ScalingReason, number> {
  return {
    from_zero: 0,
    demand: 0,
    panic: 0,
    idle: 0,
    min: 0,
    max: 0,
    crash_loop: 0,
    hold: 0,
  };
}
