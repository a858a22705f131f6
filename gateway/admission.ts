import type { Caller } from "../auth/caller.ts";
import type { CallerLimits, Passage } from "../auth/limits/caller-limits.ts";
import type { Call, CallPermit } from "../protocol/call.ts";
import { DrainRate } from "../protocol/drain-rate.ts";
import { InferenceError, type QuotaState, StatusCode } from "../protocol/error.ts";
import { type Backlog, retryAfterSeconds } from "../protocol/retry-after.ts";
import { type ModelLoad, ModelLoads } from "./model-load.ts";
import type { Refusals } from "./refusals.ts";

export interface AdmissionOptions {
  /** Of all callers together, as the two that follow. */
  readonly maxRequests: number;
  readonly maxModelRequests: number;
  readonly maxBytes: number;
  /** What bounds single callers, where something does. */
  readonly limits?: CallerLimits;
  readonly refusals: Refusals;
  /** A monotonic clock, in milliseconds. @defaultValue performance.now */
  readonly now?: () => number;
}

/** A request that wants to be let in. */
export interface Applicant {
  readonly caller: Caller;
  readonly call: Call;
  readonly model: string;
  /** Of the request, as far as is known. */
  readonly bytes: number;
}

type PermitParts = Pick<Applicant, "caller" | "call"> & { readonly load: ModelLoad };

/**
 * Lets in as many requests for work as there is room for, and as their callers may have. All others are refused at once, with
 * when to come again: with UNAVAILABLE where the server is full, with RESOURCE_EXHAUSTED where it is the caller's own limit.
 */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #now: () => number;
  readonly #loads = new ModelLoads();
  readonly #drain = new DrainRate();
  readonly #byteDrain = new DrainRate();
  #requests = 0;
  #bytes = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Requests that are under way. */
  get requests(): number {
    return this.#requests;
  }

  /** What their bodies have. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Lets a call in, which then has its permit; at once unless another process must be asked. Throws or rejects. */
  enter(applicant: Applicant): Permit | Promise<Permit> {
    const { caller, call, model, bytes } = applicant;
    const load = this.#loads.of(model);
    this.#checkRoom(applicant, load);
    const permit = new Permit(this, { caller, call, load });
    load.begin(this.#now());
    this.#requests++;
    const giveBack = (error: unknown): never => {
      permit.withdraw();
      throw error;
    };
    try {
      permit.hold(bytes);
      const passage = this.#options.limits?.enter(caller);
      if (!(passage instanceof Promise)) return permit.pass(passage);
      return passage.then((entered) => permit.pass(entered), giveBack);
    } catch (error) {
      return giveBack(error);
    }
  }

  /**
   * Holds the bytes of a request that is on its way to us, of whom we do not look yet; throws where there is no room.
   *
   * @returns lets go of them
   */
  arrive(bytes: number): () => void {
    this.hold(bytes, "");
    return () => {
      this.#bytes -= bytes;
    };
  }

  /** Holds so many bytes more, or throws. */
  hold(more: number, tenant: string): void {
    const { maxBytes } = this.#options;
    if (more > 0 && this.#bytes + more > maxBytes) {
      const drainedPerSecond = this.#byteDrain.perSecond(this.#now());
      throw this.#full("server-bytes", tenant, {
        subject: `request bytes in flight: given ${more} more, expected at most ${maxBytes} of all requests`,
        ...(more <= maxBytes && { backlog: { waiting: this.#bytes, drainedPerSecond } }),
      });
    }
    this.#bytes += more;
  }

  /** Has so much room again. */
  leave({ load }: PermitParts, bytes: number): void {
    load.leave();
    this.#requests--;
    this.#bytes -= bytes;
  }

  /** The same at the end of what was let in. */
  end(parts: PermitParts, bytes: number): void {
    const now = this.#now();
    parts.load.ended(now, parts.call);
    this.leave(parts, bytes);
    this.#drain.count(now);
    if (bytes > 0) this.#byteDrain.count(now, bytes);
  }

  /** When there may be room again for one more of the model. */
  retryAfterSeconds(load: ModelLoad): number {
    return retryAfterSeconds(load.backlog(this.#now()));
  }

  #checkRoom({ caller: { tenant }, model }: Applicant, load: ModelLoad): void {
    const { maxRequests, maxModelRequests } = this.#options;
    if (this.#requests >= maxRequests) {
      const { coldStart } = load.backlog(this.#now());
      const drainedPerSecond = this.#drain.perSecond(this.#now());
      throw this.#full("server-requests", tenant, {
        subject: `requests in flight: given one more, expected at most ${maxRequests} of all callers`,
        backlog: { waiting: this.#requests, drainedPerSecond, ...(coldStart && { coldStart }) },
      });
    }
    if (load.inFlight >= maxModelRequests) {
      throw this.#full("model-requests", tenant, {
        subject: `requests in flight for model '${model}': given one more, expected at most ${maxModelRequests}`,
        backlog: load.backlog(this.#now()),
      });
    }
  }

  #full(
    reason: string,
    tenant: string,
    { subject, backlog }: { readonly subject: string; readonly backlog?: Backlog },
  ): InferenceError {
    this.#options.refusals.count(reason, tenant);
    const retry = backlog && { retryAfterSeconds: retryAfterSeconds(backlog) };
    return new InferenceError(StatusCode.Unavailable, subject, retry);
  }
}

/** What a request was let in with, until it is over. */
export class Permit implements CallPermit {
  readonly #admission: Admission;
  readonly #parts: PermitParts;
  #passage: Passage | undefined;
  #tell: ((quota: QuotaState) => void) | undefined;
  #bytes = 0;
  #over = false;

  constructor(admission: Admission, parts: PermitParts) {
    this.#admission = admission;
    this.#parts = parts;
  }

  /** What the caller is told of its limits; undefined where it has none. */
  get quota(): QuotaState | undefined {
    return this.#passage?.quota();
  }

  /** Calls back with what is left of the caller's limits, now and whenever it is less; not at all where there are none. */
  onQuota(tell: (quota: QuotaState) => void): void {
    this.#tell = tell;
    this.#tellQuota();
  }

  /** Takes over what the caller's limits let in. */
  pass(passage: Passage | undefined): this {
    this.#passage = passage;
    this.#parts.call.permit = this;
    return this;
  }

  /** Says how many bytes the request has; throws where there is no room for them. */
  hold(bytes: number): void {
    if (bytes !== this.#bytes) this.#admission.hold(bytes - this.#bytes, this.#parts.caller.tenant);
    this.#bytes = bytes;
  }

  charge(items: number): void | Promise<void> {
    const charged = this.#passage?.charge(items);
    if (charged) return charged.then(() => this.#tellQuota());
    return this.#tellQuota();
  }

  retryAfterSeconds(): number {
    return this.#admission.retryAfterSeconds(this.#parts.load);
  }

  /** Gives back what a call had that was not let in after all: nothing was done in its place. */
  withdraw(): void {
    if (this.#over) return;
    this.#over = true;
    this.#admission.leave(this.#parts, this.#bytes);
  }

  /** Gives all of it back; the second time there is nothing to give. */
  release(): void {
    if (this.#over) return;
    this.#over = true;
    this.#passage?.release();
    this.#admission.end(this.#parts, this.#bytes);
  }

  #tellQuota(): void {
    if (this.#tell && this.#passage) this.#tell(this.#passage.quota());
  }
}
