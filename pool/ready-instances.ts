import { randomFillSync } from "node:crypto";
import type { ServedModel } from "../protocol/served-model.ts";
import type { Clock } from "../serving/clock.ts";
import type { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { StartListener } from "../serving/running-version.ts";
import { gpuIds } from "./devices.ts";
import type { FetchedVersion } from "./fetched-version.ts";
import { placeInstances, startGroup, type StartInstance } from "./instance/instance-group.ts";
import type { InstanceGroup, ModelInstance } from "./instance/model-instance.ts";
import { instanceLimits } from "./rate-limiter/instance-limits.ts";
import { LimitedInstance, LimitedInstances } from "./rate-limiter/limited-instances.ts";
import type { LimitedSeats, RateLimiter } from "./rate-limiter/rate-limiter.ts";
import { readWarmup } from "./warmup/read-warmup.ts";
import { warmUp } from "./warmup/warm-up.ts";

/** What instances are started with. */
export interface ReadyInstancesOptions {
  readonly start: StartInstance;
  /** Without one, instances run whenever they can. */
  readonly rateLimiter: RateLimiter | undefined;
  readonly statistics: ModelStatisticsRecorder;
  readonly clock: Clock;
  readonly listener: StartListener | undefined;
  readonly warmupMilliseconds: number;
}

/**
 * Starts the instances of a version so that they are ready for clients: they have run the samples of `model_warmup`, and
 * heed the rate limiter in this and in all that follows.
 */
export async function startReadyInstances(
  source: FetchedVersion,
  model: ServedModel,
  options: ReadyInstancesOptions,
): Promise<InstanceGroup> {
  const { start, rateLimiter, listener, statistics, clock } = options;
  const warming = { statistics, clock, timeLimitMilliseconds: options.warmupMilliseconds };
  const samples = await readWarmup(model, source.modelDirectory, randomFillSync);
  const seats = rateLimiter && (await takeSeats(rateLimiter, model));
  let isWarming = false;
  const prepare = async (instance: ModelInstance, place: number): Promise<void> => {
    if (!isWarming) listener?.onPhase("warmup");
    isWarming = true;
    const seat = seats?.seats[place];
    await warmUp(seat ? new LimitedInstance(instance, seat) : instance, samples, warming);
  };
  try {
    const group = await startGroup(model, start, samples.length > 0 ? prepare : undefined);
    return seats ? new LimitedInstances(group, seats) : group;
  } catch (error) {
    seats?.remove();
    throw error;
  }
}

/** None for a model that needs no resource: it would only wait longer between executions. */
async function takeSeats(
  rateLimiter: RateLimiter,
  model: ServedModel,
): Promise<LimitedSeats | undefined> {
  const limits = placeInstances(model, await gpuIds()).map(instanceLimits);
  return limits.some(({ needs }) => needs.length > 0) ? rateLimiter.register(limits) : undefined;
}
