import type { CrashHistory } from "./crash-backoff.ts";
import { noCrashes } from "./crash-backoff.ts";
import { averageDemand, withSample, type DemandSample } from "./demand-window.ts";
import { inFlightOf, isBusy, type PoolObservation, sequenceHolders } from "./observe.ts";

/** How a pool shall follow its demand. */
export interface ScalingPolicy {
  readonly minWorkers: number;
  readonly maxWorkers: number;
  /** Unanswered requests that one pool worker is meant to have. */
  readonly targetInFlight: number;
  /** Without any request for so long, a pool falls to `minWorkers`. */
  readonly idleMilliseconds: number;
  /** The pool shrinks to what the mean demand of so long needs. */
  readonly stableWindowMilliseconds: number;
  /** The pool grows to what the mean demand of so long needs, and shrinks once in so long. */
  readonly panicWindowMilliseconds: number;
  /** When the panic window needs so many times the workers that exist, nothing shrinks for a stable window. */
  readonly panicThreshold: number;
  /** A step down leaves at least one in so many workers. */
  readonly maxScaleDownRate: number;
}

/**
 * Knative's figures, which many know. A minute bridges the pauses between bursts; growth need not be damped as much,
 * because a pool worker too many costs little for a minute and one too few costs every client.
 */
export const defaultWindows = {
  stableWindowMilliseconds: 60_000,
  panicWindowMilliseconds: 6_000,
  panicThreshold: 2,
  maxScaleDownRate: 2,
} as const satisfies Partial<ScalingPolicy>;

/** An observation, and how many processes the scaler has, starting ones included. */
export interface ScalingObservation extends PoolObservation {
  readonly existingWorkers: number;
}

/** Why a pool has the size it has: labels of metrics, and what the log says. */
export const scalingReasons = {
  from_zero: "requests wait and there is no pool worker",
  demand: "that is what the demand needs",
  panic: "the demand has outgrown the pool",
  idle: "nobody has asked for a while",
  min: "that is the pool's minimum",
  max: "that is the pool's maximum",
  crash_loop: "pool workers die right after their start, so that the next one must wait",
  hold: "there is nothing to change",
} as const;
export type ScalingReason = keyof typeof scalingReasons;

export interface ScalingDecision {
  /** The processes that the pool shall have. */
  readonly workers: number;
  readonly reason: ScalingReason;
}

/** What is known from earlier observations. */
export interface ScalingState {
  readonly samples: readonly DemandSample[];
  /** Epoch milliseconds when there was last something to do. */
  readonly busyAt: number;
  /** Epoch milliseconds. */
  readonly panicUntil: number;
  /** Epoch milliseconds. */
  readonly shrunkAt: number;
  readonly crashes: CrashHistory;
}

/**
 * Says how many workers a pool shall have: at once what the demand needs when there are none, more by the mean of the
 * panic window, fewer by that of the stable window, and `minWorkers` when nobody has asked for a while.
 * @param now Epoch milliseconds.
 */
export function decide(
  policy: ScalingPolicy,
  observation: ScalingObservation,
  before: ScalingState,
  now: number,
): { readonly decision: ScalingDecision; readonly state: ScalingState } {
  const { existingWorkers: existing } = observation;
  const situation = situationOf(policy, observation, before, now);
  const decision = withinBounds(policy, existing, wantedWorkers(situation));
  const { state } = situation;
  if (decision.workers > existing && now < state.crashes.waitUntil)
    return { decision: { workers: existing, reason: "crash_loop" }, state };
  const shrinks = decision.workers < existing;
  return { decision, state: shrinks ? { ...state, shrunkAt: now } : state };
}

/** The state of a pool that nobody has looked at yet: as if it had just been busy. */
export function initialState(now: number): ScalingState {
  return { samples: [], busyAt: now, panicUntil: 0, shrunkAt: 0, crashes: noCrashes };
}

/** The state of a pool that is known to be asked now, even if that is over before anybody can look. */
export function demandSeen(state: ScalingState, now: number): ScalingState {
  return { ...state, busyAt: now };
}

interface Situation {
  readonly policy: ScalingPolicy;
  readonly observation: ScalingObservation;
  readonly state: ScalingState;
  readonly now: number;
  /** There is demand and no worker. */
  readonly waking: boolean;
  /** There was nothing to do for the idle time. */
  readonly idle: boolean;
  /** Workers that the demand of the last while needs. */
  readonly needed: number;
}

function situationOf(
  policy: ScalingPolicy,
  observation: ScalingObservation,
  before: ScalingState,
  now: number,
): Situation {
  const { demand, existingWorkers: existing } = observation;
  const { stableWindowMilliseconds, panicWindowMilliseconds, panicThreshold } = policy;
  const waking = existing === 0 && demand > 0;
  // The quiet time before a pool wakes says nothing about how much is asked of it now.
  const known = waking ? [] : before.samples;
  const samples = withSample(known, { at: now, demand }, stableWindowMilliseconds);
  const needs = (window: number): number => workersFor(policy, averageDemand(samples, now, window));
  const atOnce = needs(panicWindowMilliseconds);
  const panics = atOnce > existing && atOnce >= panicThreshold * existing;
  const busy = isBusy(observation);
  const state = {
    ...before,
    samples,
    busyAt: busy ? now : before.busyAt,
    panicUntil: panics ? now + stableWindowMilliseconds : before.panicUntil,
  };
  const needed = Math.max(atOnce, needs(stableWindowMilliseconds));
  const idle = !busy && now - state.busyAt >= policy.idleMilliseconds;
  return { policy, observation, state, now, waking, idle, needed };
}

function wantedWorkers(situation: Situation): ScalingDecision {
  const { policy, observation, state, now, waking, idle, needed } = situation;
  const { demand, existingWorkers } = observation;
  if (idle) return { workers: Math.min(existingWorkers, policy.minWorkers), reason: "idle" };
  if (waking) return { workers: needed, reason: "from_zero" };
  // Without any demand nobody would notice that a worker is missing.
  if (demand > 0 && needed > existingWorkers)
    return { workers: needed, reason: now < state.panicUntil ? "panic" : "demand" };
  return shrunk(situation);
}

function shrunk({ policy, observation, state, now, needed }: Situation): ScalingDecision {
  const { existingWorkers } = observation;
  const smallest = Math.max(
    1,
    needed,
    workersFor(policy, inFlightOf(observation)),
    sequenceHolders(observation),
    Math.ceil(existingWorkers / policy.maxScaleDownRate),
  );
  const [oldest] = state.samples;
  const calm =
    oldest !== undefined &&
    oldest.at <= now - policy.stableWindowMilliseconds &&
    state.panicUntil <= now &&
    state.shrunkAt <= now - policy.panicWindowMilliseconds;
  return calm && smallest < existingWorkers
    ? { workers: smallest, reason: "demand" }
    : { workers: existingWorkers, reason: "hold" };
}

function withinBounds(
  { minWorkers, maxWorkers }: ScalingPolicy,
  existing: number,
  wanted: ScalingDecision,
): ScalingDecision {
  const workers = Math.min(maxWorkers, Math.max(minWorkers, wanted.workers));
  const bound = wanted.workers > workers ? "max" : "min";
  if (workers === existing) return { workers, reason: bound === "max" ? bound : "hold" };
  if (workers === wanted.workers || wanted.reason === "from_zero")
    return { workers, reason: wanted.reason };
  return { workers, reason: bound };
}

function workersFor({ targetInFlight }: ScalingPolicy, requests: number): number {
  return Math.ceil(requests / targetInFlight);
}
