import type { ResponseCache } from "../../cache/response-cache.ts";
import { sha256 } from "../../cache/sha256.ts";
import { cacheKey } from "../../protocol/cache-key.ts";
import { InferenceError } from "../../protocol/error.ts";
import type { InferenceResponse } from "../../protocol/inference.ts";
import { aboutRequest, requestLabel } from "../../protocol/request-label.ts";
import type { FailureReason } from "../../telemetry/model-observation.ts";
import type { Clock } from "../clock.ts";
import { isTimeoutExpired, queueFull } from "../refusal.ts";
import { SingleResponse } from "../single-response.ts";
import type { CacheStatistics } from "../running-version.ts";
import { maxWaiting, type PendingRequest, type Scheduler } from "../scheduler.ts";
import { answerTo, Flight } from "./flight.ts";

/** What the schedulers of all versions share. */
export interface SharedCache {
  readonly cache: ResponseCache;
  /** By key, those that a request may join. Who is not in here when it lands is not kept either. */
  readonly flights: Map<string, Flight>;
  readonly clock: Clock;
}

export interface CachingOptions extends SharedCache {
  /** Runs what is not in the cache. */
  readonly scheduler: Scheduler;
  readonly statistics: CacheStatistics;
  /** Of the version's files and config. */
  readonly digest: string;
}

/**
 * Answers requests from the cache, and hands the others to the scheduler of their version; of equal ones that come at the
 * same time it hands on one.
 */
export class CachingScheduler implements Scheduler {
  readonly #options: CachingOptions;
  /** Requests that are looked up outside of this process now. */
  #lookups = 0;
  #lookedUp: () => void = () => {};

  constructor(options: CachingOptions) {
    this.#options = options;
  }

  get inflight(): number {
    return this.#options.scheduler.inflight + this.#lookups;
  }

  enqueue(pending: PendingRequest): void {
    const { cache, flights, scheduler, clock } = this.#options;
    const { sequence, cacheControl } = pending.request;
    if (sequence || cacheControl === "no-store") {
      scheduler.enqueue(pending);
      return;
    }
    const began = clock.now();
    const key = this.#keyOf(pending);
    const look = cacheControl === undefined;
    const found = look ? cache.find(key) : undefined;
    if (found) {
      this.#hit(pending, found, clock.now() - began);
      return;
    }
    const flight = look ? flights.get(key) : undefined;
    if (flight?.suits(pending)) this.#join(flight, pending);
    else this.#fly(key, [pending], look ? began : undefined);
  }

  /** What is still looked up must find the scheduler open. */
  async stop(): Promise<void> {
    if (this.#lookups > 0) await new Promise<void>((resolve) => (this.#lookedUp = resolve));
    await this.#options.scheduler.stop();
  }

  #keyOf({ request, call }: PendingRequest): string {
    const { name, version, config } = request.model;
    const scope = {
      tenant: call.principal.tenant,
      modelName: name,
      modelVersion: version,
      digest: this.#options.digest,
      outputs: config.output,
    };
    return cacheKey(scope, request, sha256);
  }

  #join(flight: Flight, pending: PendingRequest): void {
    if (flight.waiting < maxWaiting) {
      flight.join(pending);
      return;
    }
    this.#countFailed("REJECTED", pending);
    pending.sink.fail(aboutRequest(pending.request.id, queueFull()));
  }

  /**
   * Finds one answer for several requests.
   *
   * @param began when the cache was asked for it, on the clock; undefined when it must not be
   */
  #fly(key: string, pending: readonly PendingRequest[], began?: number): void {
    const { cache, flights } = this.#options;
    const [leader] = pending;
    if (!leader) return;
    const flight = new Flight(leader, (one) => this.#countFailed("CANCELED", one));
    flights.set(key, flight);
    for (const one of pending) flight.join(one);
    if (cache.isShared && began !== undefined) void this.#fetch(key, flight, began);
    else this.#run(key, flight, began);
  }

  /** Looks for the answer outside of this process before it runs the request. */
  async #fetch(key: string, flight: Flight, began: number): Promise<void> {
    const { cache, clock } = this.#options;
    this.#lookups++;
    const found = await cache.fetch(flight.leader.request.model.name, key);
    if (found) {
      this.#forget(key, flight);
      for (const one of flight.land()) this.#hit(one, found, clock.now() - began);
    } else {
      this.#run(key, flight, began);
    }
    if (--this.#lookups === 0) this.#lookedUp();
  }

  #run(key: string, flight: Flight, began?: number): void {
    const { scheduler, clock } = this.#options;
    if (!flight.run()) {
      this.#forget(key, flight);
      return;
    }
    const lookup = began === undefined ? undefined : clock.now() - began;
    const sink = new SingleResponse(
      (response) => this.#landed(key, flight, response, lookup),
      (error) => this.#failed(key, flight, error),
    );
    scheduler.enqueue({ ...flight.leader, call: flight.call, sink });
  }

  #hit(
    pending: PendingRequest,
    found: Omit<InferenceResponse, "id">,
    lookupMilliseconds: number,
  ): void {
    const { statistics, clock } = this.#options;
    statistics.cacheHit(lookupMilliseconds * 1e6, clock.now() - pending.enqueuedAt);
    pending.sink.send(answerTo(pending, found), true);
  }

  #landed(key: string, flight: Flight, response: InferenceResponse, lookup?: number): void {
    const { cache, statistics, clock } = this.#options;
    const began = clock.now();
    if (this.#forget(key, flight)) cache.keep(key, response);
    if (lookup !== undefined) statistics.cacheMiss((lookup + clock.now() - began) * 1e6);
    const [first, ...others] = flight.land();
    first?.sink.send(answerTo(first, response), true);
    for (const one of others) this.#hit(one, response, 0);
  }

  #failed(key: string, flight: Flight, error: InferenceError): void {
    this.#forget(key, flight);
    const [first, ...others] = flight.land();
    const { leader } = flight;
    first?.sink.fail(relabelled(error, leader, first));
    if (others.length === 0) return;
    if (isTimeoutExpired(error)) {
      // That was the time of one. Not at once, because each of them may fail so while it is handed on.
      queueMicrotask(() => this.#fly(key, others, this.#options.clock.now()));
      return;
    }
    for (const one of others) {
      this.#countFailed("OTHER", one);
      one.sink.fail(relabelled(error, leader, one));
    }
  }

  #countFailed(reason: FailureReason, { enqueuedAt }: PendingRequest): void {
    const { statistics, clock } = this.#options;
    statistics.failed(reason, clock.now() - enqueuedAt);
  }

  /** True for a flight that could be joined until now. */
  #forget(key: string, flight: Flight): boolean {
    const { flights } = this.#options;
    return flights.get(key) === flight && flights.delete(key);
  }
}

/** The failure of one request, told of another. */
function relabelled(
  error: InferenceError,
  from: PendingRequest,
  to: PendingRequest,
): InferenceError {
  const label = requestLabel(from.request.id);
  if (from === to || !error.message.startsWith(label)) return error;
  const { code, message, retryAfterSeconds } = error;
  return new InferenceError(code, requestLabel(to.request.id) + message.slice(label.length), {
    cause: error,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}
