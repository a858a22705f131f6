import { retryAfterSeconds } from "../../protocol/retry-after.ts";
import { aDay, Allowance, aSecond } from "./allowance.ts";
import type { Claim } from "./claim.ts";
import { InFlight, type PermitPool } from "./in-flight.ts";
import { type LimitName, limitNames, type Limits } from "./limits.ts";
import type { Points } from "./points.ts";
import type { Quota } from "./quota-state.ts";

/** Whose work is bounded. */
export interface LimitedSubject {
  readonly kind: "key" | "tenant";
  /** The key's id, or the tenant's name. */
  readonly id: string;
  /** As errors name it, as in `key 'ci'`. */
  readonly title: string;
}

/** Where what is spent is counted, and the clocks. */
export interface LimitParts {
  readonly points: Points;
  readonly permits?: PermitPool | undefined;
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Milliseconds since the epoch. */
  readonly today: () => number;
}

/** One limit of a key or a tenant, and what has been spent of it. */
export interface LimitClaim extends Claim {
  readonly subject: LimitedSubject;
  readonly name: LimitName;
  readonly limit: number;
  quota(): Quota;
  /** When so much may be there again; undefined for what is more than there ever is. */
  retryAfterSeconds(count: number): number | undefined;
}

/** All limits of a key or a tenant, with what is spent of them. */
export interface Limited {
  readonly limits: Limits;
  /** For what is taken when a call comes. */
  readonly requests: LimitClaim | undefined;
  readonly inFlight: (LimitClaim & { release(): void }) | undefined;
  /** For what is taken when its items are known. */
  readonly items: readonly LimitClaim[];
  /** True while nothing is under way. */
  readonly isIdle: boolean;
  /** Lets go of what it keeps in memory elsewhere. */
  forget(): void;
}

/** Begins to count what somebody spends. */
export function limited(subject: LimitedSubject, limits: Limits, parts: LimitParts): Limited {
  const { points, permits, now, today } = parts;
  const key = `${subject.kind}:${subject.id}`;
  const allowances: Allowance[] = [];
  const rate = (name: LimitName, period = aSecond(now)): LimitClaim | undefined => {
    const limit = limits[name];
    if (limit === undefined) return undefined;
    const allowance = new Allowance(limit, period, points, `${key}:${kinds[name].name}`);
    allowances.push(allowance);
    return allowanceClaim(subject, name, allowance);
  };
  const { inFlight: most } = limits;
  const flight =
    most === undefined ? undefined : new InFlight({ limit: most, key, pool: permits, now });
  return {
    limits,
    requests: rate("requestsPerSecond"),
    inFlight: flight && flightClaim(subject, flight),
    items: [rate("itemsPerSecond"), rate("dailyItems", aDay(today))].filter(
      (one) => one !== undefined,
    ),
    get isIdle() {
      return !flight || flight.used === 0;
    },
    forget: () => allowances.forEach((allowance) => allowance.forget()),
  };
}

/** True for limits that are equal. */
export function sameLimits(one: Limits, other: Limits): boolean {
  return limitNames.every((name) => one[name] === other[name]);
}

/** How each limit is told. */
export const kinds = {
  requestsPerSecond: { name: "requests", text: "requests a second" },
  itemsPerSecond: { name: "items", text: "items a second" },
  inFlight: { name: "in-flight", text: "requests in flight" },
  dailyItems: { name: "daily-items", text: "items a day" },
} as const satisfies Readonly<Record<LimitName, { readonly name: string; readonly text: string }>>;

function allowanceClaim(
  subject: LimitedSubject,
  name: LimitName,
  allowance: Allowance,
): LimitClaim {
  const { limit, period } = allowance;
  const unit = name === "requestsPerSecond" ? {} : { unit: "items" as const };
  return {
    subject,
    name,
    limit,
    ready: (count) => allowance.ready(count),
    spend: (count) => allowance.spend(count),
    quota: () => ({
      name: `${subject.kind}-${kinds[name].name}`,
      limit,
      ...unit,
      left: allowance.left,
      window: { seconds: period.seconds, secondsLeft: allowance.secondsLeft },
    }),
    retryAfterSeconds: (count) => (count > limit ? undefined : Math.ceil(allowance.secondsLeft)),
  };
}

function flightClaim(subject: LimitedSubject, flight: InFlight): LimitClaim & { release(): void } {
  const { limit } = flight;
  return {
    subject,
    name: "inFlight",
    limit,
    ready: (count) => flight.ready(count),
    spend: (count) => flight.spend(count),
    release: () => flight.release(),
    quota: () => ({
      name: `${subject.kind}-${kinds.inFlight.name}`,
      limit,
      unit: "concurrent-requests",
      left: flight.left,
    }),
    retryAfterSeconds: () =>
      retryAfterSeconds({ waiting: flight.used, drainedPerSecond: flight.drainedPerSecond }),
  };
}
