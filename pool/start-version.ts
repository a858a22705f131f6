import type { ServedModel } from "../protocol/served-model.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import { checkConfig, checkPlatform } from "../repository/config-check/check-config.ts";
import { normaliseConfig } from "../repository/complete-config.ts";
import type { LocalVersion } from "../repository/model-store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { checkOnnx } from "./backend/check-onnx.ts";
import { completeOnnx } from "./backend/complete-onnx.ts";
import { withClassification } from "./classification.ts";
import { startInstances } from "./instance/instance-group.ts";
import { readLabels } from "./labels.ts";
import { ModelStatisticsRecorder } from "../serving/model-statistics.ts";
import type { GraphFinding } from "./probe/graph-finding.ts";
import { Probe, type ProbeOptions } from "./probe/probe.ts";
import type {
  CountedVersion,
  StartListener,
  StartVersion,
  VersionSource,
} from "../serving/running-version.ts";
import type { FetchedVersion } from "./fetched-version.ts";
import { type Clock, systemClock } from "../serving/clock.ts";
import { directScheduler } from "./scheduler/direct-scheduler.ts";
import { dynamicBatchScheduler } from "./scheduler/dynamic-batch-scheduler.ts";
import type { SchedulerOptions } from "./scheduler/queue-scheduler.ts";
import { sequenceBatchScheduler } from "./scheduler/sequence-batch-scheduler.ts";
import { checkSequenceTensors } from "./scheduler/sequence-check.ts";
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
      return await startFetched({ ...source, ...files });
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
): (source: FetchedVersion) => Promise<CountedVersion> {
  const clock = options.clock ?? systemClock;
  const probe = new Probe(options.probe);
  return async (source) => {
    const probed = await probe.version(source, runsOnCpu(source.config, options.gpuCount));
    try {
      const config = completedConfig(source, probed.finding, options);
      const { name, version } = source;
      const { splitOversizedBatches } = options;
      const model: ServedModel = { name, version, config, splitOversizedBatches };
      const labels = await readLabels(config, source.modelDirectory);
      const sequences = await readSequenceModel(config, source.modelDirectory);
      const instances = await startInstances(source, model, probed.graph?.folder);
      const statistics = new ModelStatisticsRecorder({ name, version, tags: config.metricTags });
      const scheduler = withClassification(
        schedulerOf(model, sequences, { instances, statistics, clock }),
        labels,
      );
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
          probed.graph?.release();
          await source.release();
        },
      };
    } catch (error) {
      probed.graph?.release();
      throw error;
    }
  };
}

function runsOnCpu(config: ModelConfig, gpuCount: number): boolean {
  return gpuCount === 0 || config.instanceGroup.some(({ kind }) => kind === "KIND_CPU");
}

/** The config as it is served; throws when the model's file or this server cannot do what it says. */
function completedConfig(
  source: FetchedVersion,
  finding: GraphFinding,
  options: StartOptions,
): ModelConfig {
  const { autoComplete, defaultMaxBatchSize, gpuCount } = options;
  const complete = autoComplete
    ? completeOnnx(source.config, finding, { defaultMaxBatchSize })
    : source.config;
  const normalised = normaliseConfig(complete, { gpuCount });
  const config = withoutSequenceTensors(normalised, source.config);
  checkConfig(config, source.name);
  checkOnnx(config, finding);
  checkSequenceTensors(config, finding);
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
