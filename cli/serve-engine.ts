import manifest from "../package.json" with { type: "json" };
import type { Access } from "../gateway/access.ts";
import { auditTrail } from "../gateway/audit-trail.ts";
import { DataPlane } from "../gateway/data-plane.ts";
import type { Engine } from "../protocol/engine.ts";
import type { ServerLog } from "../telemetry/logger.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { asksForKeys, isLoopback } from "./access-settings.ts";
import type { OpenAdmission } from "./admission.ts";
import type { OpenAuditLog } from "./audit-log.ts";
import { metricsAddress } from "./check-settings.ts";
import { endSignal, endWithin, exitAtOnce } from "./drain.ts";
import { type Endpoint, openEndpoints } from "./endpoints.ts";
import { metricsRegistry } from "./metrics.ts";
import type { Settings } from "./settings.ts";
import type { StartedEngine } from "./start-engine.ts";
import { certificateMetrics, type TlsPorts } from "./tls.ts";

/** Extensions of the v2 protocol that this server speaks. */
const extensions = [
  "classification",
  "sequence",
  "model_repository",
  "model_repository(unload_dependents)",
  "schedule_policy",
  "model_configuration",
  "system_shared_memory",
  "cuda_shared_memory",
  "binary_tensor_data",
  "parameters",
  "statistics",
  "trace",
  "logging",
];

/** What callers meet before the engine; read before any model is. */
export interface FrontDoor {
  /** Without it nobody is asked for a key. */
  readonly access: Access | undefined;
  /** What bounds how much may be asked at a time. */
  readonly admission: OpenAdmission;
  readonly tls: TlsPorts;
  readonly tracer: Tracer;
  readonly audit: OpenAuditLog;
}

/**
 * Opens the ports in front of an engine and serves until a signal ends the process. As with the reference, ports open
 * when the models are loaded.
 *
 * @returns the exit code: 0 after a clean end, 1 when models failed to load or requests had to be cut off
 */
export async function serveEngine(
  settings: Settings,
  log: ServerLog,
  { engine, failures, jobs, uploads, metrics: more = [] }: StartedEngine,
  { access, admission, tls, tracer, audit }: FrontDoor,
): Promise<number> {
  if (failures.length > 0 && settings.exitOnError) {
    const models = failures.map(({ name }) => name);
    log.error("failed to load all models; --exit-on-error=false serves the others", { models });
    return 1;
  }
  const server = { name: settings.id, version: manifest.version, extensions };
  const plane = new DataPlane(engine, server, jobs, uploads);
  const metrics = metricsRegistry(settings, () => engine.observations(), [
    ...more,
    admission.metrics,
    () => certificateMetrics(tls),
  ]);
  const endpoints = await openEndpoints(settings, {
    plane,
    log,
    tracer,
    access,
    admission: admission.admission,
    tls,
    audit: auditTrail({ log: audit, authenticator: access?.authenticator }),
    metrics: () => metrics.text(),
  });
  const asked = endSignal(settings.endWithStdin);
  announce(settings, endpoints, log);
  const signal = await asked;
  uploads?.close();
  log.info("ending: requests in flight get their answers", { signal });
  const clean = await endWithin(settings.exitTimeoutSecs, (overdue) =>
    end({ plane, endpoints, engine, tracer, overdue }),
  );
  if (!clean) {
    log.error("ended with requests in flight: --exit-timeout-secs was over");
    audit.flush();
    exitAtOnce(1);
  }
  await audit.close();
  log.info("ended");
  return 0;
}

function announce(settings: Settings, endpoints: readonly Endpoint[], log: ServerLog): void {
  const whom = settings.allowAnonymous ? "everybody who reaches them" : "this machine only";
  const stance = asksForKeys(settings)
    ? "callers must show an API key or a token"
    : `the ports ask for no key and are open to ${whom}`;
  const addresses = Object.fromEntries(endpoints.map(({ name, address }) => [name, address]));
  log.info(`serving; ${stance}${metricsStance(settings)}`, addresses);
}

/** Where the rule of the metrics is another one. */
function metricsStance(settings: Settings): string {
  const { allowMetrics, metricsAnonymous, allowAnonymous } = settings;
  if (!allowMetrics || !metricsAnonymous || allowAnonymous) return "";
  return isLoopback(metricsAddress(settings)) ? "" : "; the metrics are open to everybody";
}

interface Running {
  readonly plane: DataPlane;
  readonly endpoints: readonly Endpoint[];
  readonly engine: Engine;
  readonly tracer: Tracer;
  readonly overdue: AbortSignal;
}

/** First nobody new comes in, then those inside get their answers; the metrics tell of it until the last moment. */
async function end({ plane, endpoints, engine, tracer, overdue }: Running): Promise<void> {
  plane.drain();
  plane.jobs?.close();
  const doors = endpoints.filter(({ name }) => name !== "metrics");
  await Promise.all(doors.map((door) => door.close(overdue)));
  await engine.close(overdue);
  await tracer.close();
}
