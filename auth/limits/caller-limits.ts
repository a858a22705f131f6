import { InferenceError, type QuotaState, StatusCode } from "../../protocol/error.ts";
import type { Caller } from "../caller.ts";
import { takeAll } from "./claim.ts";
import {
  kinds,
  limited,
  type Limited,
  type LimitClaim,
  type LimitParts,
  sameLimits,
} from "./limited.ts";
import { bounds, type Limits, noLimits } from "./limits.ts";
import { quotaPolicy, quotasLeft, quotaState } from "./quota-state.ts";

/** What bounds those for whom nothing else is said. */
export interface LimitRules {
  /** Each key that has no limit of the same name itself. */
  readonly eachKey: Limits;
  /** Each tenant, likewise. */
  readonly eachTenant: Limits;
  readonly tenants: ReadonlyMap<string, Limits>;
}

export interface CallerLimitsOptions extends LimitParts {
  readonly rules: LimitRules;
  /** Told of each refusal. */
  readonly onRefused: (reason: string, tenant: string) => void;
}

/** What a call of a limited caller was let in with. */
export interface Passage {
  /** Counts its items, before they are worked on; throws or rejects with RESOURCE_EXHAUSTED. */
  charge(items: number): void | Promise<void>;
  /** What the caller's headers say of the limits and of what is left. */
  quota(): QuotaState;
  /** The call is over; to be called once. */
  release(): void;
}

/** The limits that bound the calls of one caller. */
interface Bounds {
  readonly caller: Caller;
  readonly limited: readonly Limited[];
  readonly entering: readonly LimitClaim[];
  readonly charging: readonly LimitClaim[];
  readonly all: readonly LimitClaim[];
  /** Of the caller's headers: it does not change. */
  readonly policy: string;
}

/** So many keys and tenants are remembered. */
const mostRemembered = 20_000;

/** Knows what each caller may do, and has done: as the holder of a key, and as one of a tenant. */
export class CallerLimits {
  readonly #options: CallerLimitsOptions;
  readonly #keys = new Map<string, Limited>();
  readonly #tenants = new Map<string, Limited>();
  /** By caller; who is not there any more is forgotten with it. */
  #bounds = new WeakMap<Caller, Bounds>();

  constructor(options: CallerLimitsOptions) {
    this.#options = options;
  }

  /** How many keys and tenants are remembered. */
  get size(): number {
    return this.#keys.size + this.#tenants.size;
  }

  /**
   * Lets a call in; at once unless another process must be asked. Throws or rejects with RESOURCE_EXHAUSTED.
   *
   * @returns undefined for a caller whom nothing bounds
   */
  enter(caller: Caller): Passage | undefined | Promise<Passage> {
    const found = this.#bounds.get(caller) ?? this.#boundsOf(caller);
    if (found.all.length === 0) return undefined;
    const short = takeAll(found.entering, 1);
    if (!(short instanceof Promise)) return this.#passage(found, short);
    return short.then((claim) => this.#passage(found, claim));
  }

  #passage(found: Bounds, short: LimitClaim | undefined): Passage {
    if (short) throw this.#refusal(found, short, 1);
    const { charging, limited: subjects } = found;
    return {
      charge: (items) => {
        const lacking = takeAll(charging, items);
        if (lacking === undefined) return undefined;
        if (!(lacking instanceof Promise)) throw this.#refusal(found, lacking, items);
        return this.#charged(found, lacking, items);
      },
      quota: () => ({ policy: found.policy, left: quotasLeft(quotasOf(found)) }),
      release: () => {
        for (const { inFlight } of subjects) inFlight?.release();
      },
    };
  }

  async #charged(
    found: Bounds,
    lacking: Promise<LimitClaim | undefined>,
    items: number,
  ): Promise<void> {
    const claim = await lacking;
    if (claim) throw this.#refusal(found, claim, items);
  }

  #refusal(found: Bounds, claim: LimitClaim, count: number): InferenceError {
    const { kind, title } = claim.subject;
    const { text, name } = kinds[claim.name];
    this.#options.onRefused(`${kind}-${name}`, found.caller.tenant);
    const seconds = claim.retryAfterSeconds(count);
    return new InferenceError(
      StatusCode.ResourceExhausted,
      `${text} of ${title}: given ${count === 1 ? "one" : count} more, expected at most ${claim.limit}`,
      {
        ...(seconds !== undefined && { retryAfterSeconds: seconds }),
        quota: quotaState(quotasOf(found)),
      },
    );
  }

  #boundsOf(caller: Caller): Bounds {
    if (this.size >= mostRemembered) this.#forgetSome();
    const subjects = [this.#keyOf(caller), this.#tenantOf(caller)].filter(
      (one) => one !== undefined,
    );
    const entering = subjects.flatMap(({ inFlight, requests }) =>
      [inFlight, requests].filter((claim) => claim !== undefined),
    );
    const charging = subjects.flatMap(({ items }) => items);
    const all = [...entering, ...charging];
    const policy = quotaPolicy(all.map((claim) => claim.quota()));
    const found = { caller, limited: subjects, entering, charging, all, policy };
    this.#bounds.set(caller, found);
    return found;
  }

  /** Of those who hold a key. */
  #keyOf({ name, title = name, limits: own }: Caller): Limited | undefined {
    if (!own) return undefined;
    const id = name.slice(name.indexOf(":") + 1);
    const limits = { ...this.#options.rules.eachKey, ...own };
    const subject = { kind: "key", id, title: `key '${title}'` } as const;
    return this.#remembered(this.#keys, subject, limits);
  }

  #tenantOf({ tenant }: Caller): Limited | undefined {
    const { eachTenant, tenants } = this.#options.rules;
    const limits = { ...eachTenant, ...(tenants.get(tenant) ?? noLimits) };
    const subject = { kind: "tenant", id: tenant, title: `tenant '${tenant}'` } as const;
    return this.#remembered(this.#tenants, subject, limits);
  }

  #remembered(
    known: Map<string, Limited>,
    subject: Parameters<typeof limited>[0],
    limits: Limits,
  ): Limited | undefined {
    if (!bounds(limits)) return undefined;
    const before = known.get(subject.id);
    if (before && sameLimits(before.limits, limits)) return before;
    const now = limited(subject, limits, this.#options);
    known.set(subject.id, now);
    return now;
  }

  /** Makes room: of those who have nothing under way, some that have been known for longest. */
  #forgetSome(): void {
    // What they lead to may be forgotten now.
    this.#bounds = new WeakMap();
    let most = mostRemembered / 8;
    for (const known of [this.#tenants, this.#keys]) {
      for (const [id, one] of known) {
        if (most === 0) return;
        if (!one.isIdle) continue;
        one.forget();
        known.delete(id);
        most--;
      }
    }
  }
}

function quotasOf({ all }: Bounds) {
  return all.map((claim) => claim.quota());
}
