import type { ServedModel } from "../protocol/served-model.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import { checkConfig, checkPlatform } from "../repository/config-check/check-config.ts";
import { normaliseConfig } from "../repository/complete-config.ts";
import type { LocalVersion } from "../repository/model-store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { openOnnx } from "./backend/open-onnx.ts";
import { frameworkOf } from "./backend/python/frameworks.ts";
import { openFramework } from "./backend/python/open-framework.ts";
import { openPython } from "./backend/python/open-python.ts";
import type { PythonOptions } from "./backend/python/options.ts";
import { withClassification } from "./classification.ts";
import { readLabels } from "./labels.ts";
import { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { OpenedModel } from "./opened-model.ts";
import { Probe, type ProbeOptions } from "./probe/probe.ts";
import type { RateLimiter } from "./rate-limiter/rate-limiter.ts";
import { startReadyInstances } from "./ready-instances.ts";
import type {
  CountedVersion,
  StartListener,
  StartVersion,
  VersionSource,
} from "../serving/running-version.ts";
import type { FetchedVersion } from "./fetched-version.ts";
import { type Clock, systemClock } from "../serving/clock.ts";
import { withoutEndlessWait } from "./scheduler/endless-wait.ts";
import { directScheduler } from "./scheduler/direct-scheduler.ts";
import { dynamicBatchScheduler } from "./scheduler/dynamic-batch-scheduler.ts";
import type { SchedulerOptions } from "./scheduler/queue-scheduler.ts";
import { sequenceBatchScheduler } from "./scheduler/sequence-batch-scheduler.ts";
import {
  readSequenceModel,
  type SequenceModel,
  withoutSequenceTensors,
} from "./scheduler/sequence-model.ts";
import type { Scheduler } from "../serving/scheduler.ts";
import { splitOversized } from "./scheduler/split-oversized.ts";
import { checkSupported, settingsWithoutEffect } from "./supported-config.ts";

export interface StartOptions {
  readonly probe: ProbeOptions;
  /** GPUs of this machine. */
  readonly gpuCount: number;
  /** False with `--disable-auto-complete-config`: the config has to say everything itself. */
  readonly autoComplete: boolean;
  /** `max_batch_size` of a model whose graph allows batches and whose config says nothing about them. */
  readonly defaultMaxBatchSize: number;
  /** Run a request with more than `max_batch_size` items in parts instead of refusing it. */
  readonly splitOversizedBatches: boolean;
  /** For all samples of `model_warmup` on one instance. @defaultValue 600,000 */
  readonly warmupMilliseconds?: number;
  /** Shared by all models of the process; without one, `rate_limiter` in a config changes nothing. */
  readonly rateLimiter?: RateLimiter;
  /** Without them Python models are refused. */
  readonly python?: PythonOptions;
  /** @defaultValue systemClock */
  readonly clock?: Clock;
}

/** Makes the function that turns the files of a version into something that answers, in this process. */
export function versionStarter(options: StartOptions, log: Logger): StartVersion<CountedVersion> {
  const startFetched = fetchedStarter(options);
  return async (source, listener) => {
    checkSupported(source.config);
    checkPlatform(source.config, source.name);
    warnOfSettings(source, log);
    listener?.onPhase("fetch");
    const files = await fetchFiles(source, listener);
    try {
      listener?.onPhase("load");
      return await startFetched({ ...source, ...files }, listener);
    } catch (error) {
      await files.release();
      throw error;
    }
  };
}

function warnOfSettings({ name, config }: VersionSource, log: Logger): void {
  for (const setting of settingsWithoutEffect(config)) {
    log.warn(`model '${name}': '${setting}' has no effect yet`, { model: name });
  }
}

function fetchFiles(source: VersionSource, listener?: StartListener): Promise<LocalVersion> {
  return source.fetch(listener && { onProgress: (progress) => listener.onFetched(progress) });
}

function fetchedStarter(
  options: StartOptions,
): (source: FetchedVersion, listener?: StartListener) => Promise<CountedVersion> {
  const clock = options.clock ?? systemClock;
  const probe = new Probe(options.probe);
  return async (source, listener) => {
    const opened = await openModel(source, probe, options);
    try {
      const config = await completedConfig(source, opened, options);
      const { name, version } = source;
      // The parts of a request would answer any number of times each, and nothing says which belong together.
      const decoupled = config.modelTransactionPolicy?.decoupled === true;
      const splitOversizedBatches = options.splitOversizedBatches && !decoupled;
      const model: ServedModel = { name, version, config, splitOversizedBatches };
      const labels = await readLabels(config, source.modelDirectory);
      const sequences = await readSequenceModel(config, source.modelDirectory);
      const statistics = new ModelStatisticsRecorder({ name, version, tags: config.metricTags });
      const instances = await startReadyInstances(source, model, {
        start: opened.starter(model),
        rateLimiter: options.rateLimiter,
        statistics,
        clock,
        listener,
        warmupMilliseconds: options.warmupMilliseconds ?? 600_000,
      });
      const own = schedulerOf(model, sequences, { instances, statistics, clock });
      const waiting = withoutEndlessWait(own, model, instances.instances.length);
      const scheduler = withClassification(waiting, labels);
      return {
        model,
        scheduler,
        statistics,
        get healthy() {
          return instances.healthy;
        },
        async close() {
          await scheduler.stop();
          await instances.close();
          await opened.release();
          await source.release();
        },
      };
    } catch (error) {
      await opened.release();
      throw error;
    }
  };
}

function openModel(
  source: FetchedVersion,
  probe: Probe,
  { python, gpuCount, defaultMaxBatchSize }: StartOptions,
): Promise<OpenedModel> {
  if (python && source.config.backend === "python") return openPython(source, python);
  const framework = python && frameworkOf(source.config);
  if (framework) return openFramework(source, framework, { ...python, defaultMaxBatchSize });
  return openOnnx(source, { probe, gpuCount, defaultMaxBatchSize });
}

/** The config as it is served; throws when the model or this server cannot do what it says. */
async function completedConfig(
  source: FetchedVersion,
  opened: OpenedModel,
  { autoComplete, gpuCount }: StartOptions,
): Promise<ModelConfig> {
  const complete = autoComplete ? await opened.complete(source.config) : source.config;
  const normalised = normaliseConfig(complete, { gpuCount });
  const config = withoutSequenceTensors(normalised, source.config);
  checkConfig(config, source.name);
  opened.check(config);
  return config;
}

function schedulerOf(
  model: ServedModel,
  sequences: SequenceModel | undefined,
  options: SchedulerOptions,
): Scheduler {
  if (sequences) return sequenceBatchScheduler(sequences, options);
  const { dynamicBatching, maxBatchSize } = model.config;
  const scheduler = dynamicBatching
    ? dynamicBatchScheduler(model.config, dynamicBatching, options)
    : directScheduler(options);
  return model.splitOversizedBatches && maxBatchSize > 0
    ? splitOversized(scheduler, maxBatchSize)
    : scheduler;
}
