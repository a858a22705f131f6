import { randomBytes } from "node:crypto";
import { totalmem } from "node:os";
import type { CallerLimits, LimitRules } from "../auth/limits/caller-limits.ts";
import { Admission } from "../gateway/admission.ts";
import { Refusals } from "../gateway/refusals.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { admissionMetrics } from "../telemetry/admission-metrics.ts";
import type { MetricSource } from "../telemetry/registry.ts";
import { asksForKeys } from "./access-settings.ts";
import type { Settings } from "./settings.ts";

/** What bounds nobody. */
const noRules: LimitRules = { eachKey: {}, eachTenant: {}, tenants: new Map() };

/** What lets calls in, and what it measures. */
export interface OpenAdmission {
  readonly admission: Admission;
  readonly metrics: MetricSource;
}

/**
 * Opens what bounds how much callers may ask at a time. It lives as long as the process.
 *
 * @param redis of the queues, by which gateways hold limits together
 */
export async function openAdmission(
  settings: Settings,
  redis?: Pick<RedisConnections, "commands" | "subscriber">,
): Promise<OpenAdmission> {
  const rules = await openRules(settings.limits);
  const refusals = new Refusals();
  // Keys may get limits at any time.
  const limited = asksForKeys(settings) || settings.limits !== undefined;
  const admission = new Admission({
    maxRequests: settings.maxRequestsInFlight,
    maxModelRequests: settings.maxModelRequestsInFlight,
    maxBytes: settings.maxBytesInFlight ?? Math.floor(memoryBytes() / 2),
    refusals,
    ...(limited && { limits: await openLimits(rules, refusals, redis) }),
  });
  return {
    admission,
    metrics: () => {
      const { requests, bytes } = admission;
      return admissionMetrics({ requests, bytes, refusals });
    },
  };
}

/** YAML is read, and its library loaded, only where there is some. */
async function openRules(path: string | undefined): Promise<LimitRules> {
  if (path === undefined) return noRules;
  const { readLimitsFile } = await import("./limits-file.ts");
  return readLimitsFile(path);
}

async function openLimits(
  rules: LimitRules,
  refusals: Refusals,
  redis: Pick<RedisConnections, "commands" | "subscriber"> | undefined,
): Promise<CallerLimits> {
  // Not everybody has limits: the library is loaded for those who may.
  const { CallerLimits } = await import("../auth/limits/caller-limits.ts");
  return new CallerLimits({
    ...(await (redis ? sharedParts(redis) : ownParts())),
    rules,
    now: () => performance.now(),
    today: Date.now,
    onRefused: (reason, tenant) => refusals.count(reason, tenant),
  });
}

async function ownParts() {
  const { memoryPoints } = await import("../auth/limits/points.ts");
  return { points: memoryPoints() };
}

async function sharedParts({
  commands,
  subscriber,
}: Pick<RedisConnections, "commands" | "subscriber">) {
  const { redisPoints } = await import("../auth/limits/points.ts");
  const { GatewayCount } = await import("../auth/limits/gateway-count.ts");
  const { RedisPermits } = await import("../auth/limits/redis-permits.ts");
  const gateway = randomBytes(9).toString("base64url");
  const others = new GatewayCount(commands, gateway);
  const gateways = (): number => others.count;
  return {
    points: redisPoints(commands, gateways),
    permits: new RedisPermits({ commands, subscriber, gateway, gateways }),
  };
}

/** What the system lets this process have; that of the machine where nothing is said. */
function memoryBytes(): number {
  const allowed = process.constrainedMemory();
  return allowed > 0 ? Math.min(allowed, totalmem()) : totalmem();
}
