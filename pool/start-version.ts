import type { ServedModel } from "../protocol/served-model.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import { checkConfig, checkPlatform } from "../repository/config-check/check-config.ts";
import { normaliseConfig } from "../repository/complete-config.ts";
import { checkOnnx } from "./backend/check-onnx.ts";
import { completeOnnx } from "./backend/complete-onnx.ts";
import { withClassification } from "./classification.ts";
import { startInstances } from "./instance/instance-group.ts";
import { readLabels } from "./labels.ts";
import { ModelStatisticsRecorder } from "./model-statistics.ts";
import type { GraphFinding } from "./probe/graph-finding.ts";
import { Probe, type ProbedVersion, type ProbeOptions } from "./probe/probe.ts";
import type { RunningVersion, StartVersion, VersionSource } from "./running-version.ts";
import { type Clock, systemClock } from "./scheduler/clock.ts";
import { directScheduler } from "./scheduler/direct-scheduler.ts";
import { dynamicBatchScheduler } from "./scheduler/dynamic-batch-scheduler.ts";
import type { SchedulerOptions } from "./scheduler/queue-scheduler.ts";
import type { Scheduler } from "./scheduler/scheduler.ts";
import { splitOversized } from "./scheduler/split-oversized.ts";
import { checkSupported } from "./supported-config.ts";

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

/** Makes the function that turns the files of a version into something that answers. */
export function versionStarter(options: StartOptions): StartVersion {
  const clock = options.clock ?? systemClock;
  const probe = new Probe(options.probe);
  return async (source) => {
    checkSupported(source.config);
    checkPlatform(source.config, source.name);
    const probed = await probe.version(source, runsOnCpu(source.config, options.gpuCount));
    try {
      const config = completedConfig(source, probed.finding, options);
      const { name, version } = source;
      const { splitOversizedBatches } = options;
      const model: ServedModel = { name, version, config, splitOversizedBatches };
      const labels = await readLabels(config, source.modelDirectory);
      const instances = await startInstances(source, model, probed.graph?.folder);
      const statistics = new ModelStatisticsRecorder({ name, version, tags: config.metricTags });
      const scheduler = withClassification(
        schedulerOf(model, { instances, statistics, clock }),
        labels,
      );
      return running({ model, scheduler, instances, statistics }, probed);
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
  source: VersionSource,
  finding: GraphFinding,
  options: StartOptions,
): ModelConfig {
  const { autoComplete, defaultMaxBatchSize, gpuCount } = options;
  const complete = autoComplete
    ? completeOnnx(source.config, finding, { defaultMaxBatchSize })
    : source.config;
  const config = normaliseConfig(complete, { gpuCount });
  checkConfig(config, source.name);
  checkOnnx(config, finding);
  return config;
}

function schedulerOf(model: ServedModel, options: SchedulerOptions): Scheduler {
  const { dynamicBatching, maxBatchSize } = model.config;
  const scheduler = dynamicBatching
    ? dynamicBatchScheduler(model.config, dynamicBatching, options)
    : directScheduler(options);
  return model.splitOversizedBatches && maxBatchSize > 0
    ? splitOversized(scheduler, maxBatchSize)
    : scheduler;
}

function running(
  parts: Omit<RunningVersion, "close">,
  { graph }: Pick<ProbedVersion, "graph">,
): RunningVersion {
  return {
    ...parts,
    async close() {
      await parts.scheduler.stop();
      await parts.instances.close();
      graph?.release();
    },
  };
}
