import { anonymous } from "../protocol/call.ts";
import type { Jobs } from "../protocol/job.ts";
import { withClassification } from "../pool/classification.ts";
import type { ModelHost } from "../pool/backend/python/host.ts";
import { gpuIds } from "../pool/devices.ts";
import { readLabels } from "../pool/labels.ts";
import { RateLimiter } from "../pool/rate-limiter/rate-limiter.ts";
import { versionStarter } from "../pool/start-version.ts";
import type { Classifier } from "../serving/ensemble/start-ensemble.ts";
import {
  type LifecycleOptions,
  type LoadFailure,
  ModelLifecycle,
} from "../serving/lifecycle/model-lifecycle.ts";
import type { CountedVersion, StartVersion } from "../serving/running-version.ts";
import { MemoryDeliveries } from "../serving/memory-deliveries.ts";
import { MemoryJobs } from "../serving/memory-jobs.ts";
import { ServingEngine } from "../serving/serving-engine.ts";
import type { ModelUploads } from "../serving/uploads/model-uploads.ts";
import type { AuditLog } from "../telemetry/audit-log.ts";
import type { Logger } from "../telemetry/logger.ts";
import { modelCacheMetrics } from "../telemetry/model-cache-metrics.ts";
import type { MetricSource } from "../telemetry/registry.ts";
import type { Tracer } from "../telemetry/tracer.ts";
import { webhookMetrics } from "../telemetry/webhook-metrics.ts";
import { parseBackendConfig } from "./backend-config.ts";
import { EngineHost } from "./engine-host.ts";
import { jobLimits } from "./job-limits.ts";
import { openRepository } from "./model-repository.ts";
import { openUploads } from "./model-uploads.ts";
import { pythonOptions } from "./python-options.ts";
import { openResponseCaching } from "./response-caching.ts";
import type { Settings } from "./settings.ts";
import { openWebhooks } from "./webhooks.ts";

/** An engine that has loaded what it loads at the start. */
export interface StartedEngine {
  readonly engine: ServingEngine;
  /** The models that should have loaded and did not. */
  readonly failures: readonly LoadFailure[];
  readonly jobs: Jobs;
  /** Absent where no uploads are taken. */
  readonly uploads?: ModelUploads | undefined;
  /** What else is measured. */
  readonly metrics?: readonly MetricSource[];
}

/** Who is told of what the engine does. */
export interface EngineObservers {
  readonly audit: AuditLog;
  readonly tracer: Tracer;
}

/** Makes the engine that runs models in this process; resolves when it has loaded what it loads at the start. */
export async function startEngine(
  settings: Settings,
  log: Logger,
  { audit, tracer }: EngineObservers,
): Promise<StartedEngine> {
  const { repository, cacheCounters } = await openRepository(settings);
  const { promise: made, resolve: connect } = Promise.withResolvers<ServingEngine>();
  const host = new EngineHost(() => made, audit);
  const start = await localStarter(settings, log, host);
  const cache = await openResponseCaching(settings, log);
  const options = { ...lifecycleOptions(settings, audit), caching: cache?.caching };
  const lifecycle = new ModelLifecycle(repository, start, options, log);
  const engine = new ServingEngine(lifecycle, {
    strictReadiness: settings.strictReadiness,
    flushCache: cache && ((name) => cache.caching.flush(name)),
  });
  connect(engine);
  const sender = await openWebhooks(settings, log);
  const webhooks = sender && new MemoryDeliveries(sender, log);
  if (webhooks) log.info("webhooks that are not delivered are lost when this process ends");
  return {
    engine,
    failures: await lifecycle.start(),
    uploads: await openUploads(settings, { repository, engine, log }),
    jobs: new MemoryJobs({
      ...jobLimits(settings),
      engine,
      maxBytes: settings.jobMemoryMb * 1024 * 1024,
      webhooks,
      tracer,
    }),
    metrics: [
      () => modelCacheMetrics(cacheCounters),
      ...(cache?.metrics ?? []),
      () => host.metrics.families(),
      ...(webhooks ? [() => webhookMetrics(webhooks.observe(), Date.now())] : []),
    ],
  };
}

/** What decides which models are loaded. @param audit told of what the repository changes */
export function lifecycleOptions(settings: Settings, audit?: AuditLog): LifecycleOptions {
  return {
    mode: settings.modelControlMode,
    pollSeconds: settings.repositoryPollSecs,
    loadModels: settings.loadModel,
    loadThreadCount: settings.modelLoadThreadCount,
    classifier,
    followed: (action, subject, cause) =>
      audit?.write({ action, subject, principal: repositoryPrincipal, via: "poll", cause }),
  };
}

/** Whoever may write into the model repository: who that was it does not tell. */
const repositoryPrincipal = { ...anonymous, name: "repository" };

/** An ensemble's labels lie beside its config, as any model's. */
const classifier: Classifier = async (source) => {
  if (source.config.output.every(({ labelFilename }) => labelFilename === ""))
    return (scheduler) => withClassification(scheduler, new Map());
  const files = await source.fetch();
  try {
    const labels = await readLabels(source.config, files.modelDirectory);
    return (scheduler) => withClassification(scheduler, labels);
  } finally {
    await files.release();
  }
};

/** Starts versions in this process. @param host what Python models may ask of the server */
export async function localStarter(
  settings: Settings,
  log: Logger,
  host: ModelHost,
): Promise<StartVersion<CountedVersion>> {
  const { defaultMaxBatchSize, warnings } = parseBackendConfig(settings.backendConfig);
  for (const warning of warnings) log.warn(warning);
  const options = {
    probe: {
      cacheDirectory: settings.localCacheDirectory,
      memoryLimitBytes: settings.probeMemoryLimitMb * 1024 * 1024,
      timeLimitMilliseconds: settings.probeTimeoutSecs * 1000,
    },
    gpuCount: (await gpuIds()).length,
    autoComplete: !settings.disableAutoCompleteConfig,
    defaultMaxBatchSize,
    splitOversizedBatches: settings.splitOversizedBatches,
    warmupMilliseconds: settings.warmupTimeoutSecs * 1000,
    python: pythonOptions(settings, log, host),
    ...(settings.rateLimit === "execution_count" && {
      rateLimiter: new RateLimiter(settings.rateLimitResource),
    }),
  };
  return versionStarter(options, log);
}
