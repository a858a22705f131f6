import manifest from "../package.json" with { type: "json" };
import type { Access } from "../gateway/access.ts";
import { DataPlane } from "../gateway/data-plane.ts";
import type { Engine } from "../protocol/engine.ts";
import type { ServerLog } from "../telemetry/logger.ts";
import { parseTraceConfig } from "../telemetry/trace-config.ts";
import { startTracer } from "../telemetry/trace-start.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { asksForKeys } from "./access-settings.ts";
import { endSignal, endWithin, exitAtOnce } from "./drain.ts";
import { type Endpoint, openEndpoints } from "./endpoints.ts";
import { metricsRegistry } from "./metrics.ts";
import type { Settings } from "./settings.ts";
import type { StartedEngine } from "./start-engine.ts";

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

/**
 * Opens the ports in front of an engine and serves until a signal ends the process. As with the reference, ports open
 * when the models are loaded.
 *
 * @param access without it nobody is asked for a key
 * @returns the exit code: 0 after a clean end, 1 when models failed to load or requests had to be cut off
 */
export async function serveEngine(
  settings: Settings,
  log: ServerLog,
  { engine, failures, jobs, metrics: more = [] }: StartedEngine,
  access: Access | undefined,
): Promise<number> {
  if (failures.length > 0 && settings.exitOnError) {
    const models = failures.map(({ name }) => name);
    log.error("failed to load all models; --exit-on-error=false serves the others", { models });
    return 1;
  }
  const server = { name: settings.id, version: manifest.version, extensions };
  const plane = new DataPlane(engine, server, jobs);
  const metrics = metricsRegistry(settings, () => engine.observations(), more);
  const tracer = await startTracer(parseTraceConfig(settings.traceConfig), log);
  const endpoints = await openEndpoints(settings, {
    plane,
    log,
    tracer,
    access,
    metrics: () => metrics.text(),
  });
  const asked = endSignal(settings.endWithStdin);
  announce(settings, endpoints, log);
  const signal = await asked;
  log.info("ending: requests in flight get their answers", { signal });
  const clean = await endWithin(settings.exitTimeoutSecs, (overdue) =>
    end({ plane, endpoints, engine, tracer, overdue }),
  );
  if (!clean) {
    log.error("ended with requests in flight: --exit-timeout-secs was over");
    exitAtOnce(1);
  }
  log.info("ended");
  return 0;
}

function announce(settings: Settings, endpoints: readonly Endpoint[], log: ServerLog): void {
  const whom = settings.allowAnonymous ? "everybody who reaches them" : "this machine only";
  const stance = asksForKeys(settings)
    ? "callers must show an API key or a token"
    : `the ports ask for no key and are open to ${whom}`;
  const addresses = Object.fromEntries(endpoints.map(({ name, address }) => [name, address]));
  log.info(`serving; ${stance}`, addresses);
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
