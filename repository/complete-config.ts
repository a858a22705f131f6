import { invalidArgument } from "../protocol/error.ts";
import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelInstanceGroup,
  ModelOptimizationPolicy,
  ModelSequenceBatching,
} from "../protocol/model-config.ts";
import { isEnsemble, platforms } from "./platforms.ts";

/** Fills in a model's name and backend by its directory, as a config that leaves them out means them. */
export function inferBackend(
  config: ModelConfig,
  modelName: string,
  firstVersionFiles: readonly string[],
): ModelConfig {
  if (config.name !== "" && config.name !== modelName) {
    throw invalidArgument(
      `unexpected directory name '${modelName}' for model '${config.name}', directory name must equal model name`,
    );
  }
  const named = { ...config, name: modelName };
  if (isEnsemble(config)) return named;
  const found = platformOf(config, firstVersionFiles);
  if (found) {
    return {
      ...named,
      backend: found.backend,
      platform: config.platform || found.platform,
      defaultModelFilename: config.defaultModelFilename || found.fileName,
    };
  }
  // A platform or backend that nobody here knows is refused where it would be started.
  if (config.backend !== "" || config.platform !== "") return named;
  throw invalidArgument(
    `Invalid model name: Could not determine backend for model '${modelName}' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.`,
  );
}

type Platform = (typeof platforms)[number];

function platformOf(config: ModelConfig, files: readonly string[]): Platform | undefined {
  if (config.backend === "") return meantOf(platforms, config, files);
  const ofBackend = platforms.filter(({ backend }) => backend === config.backend);
  return meantOf(ofBackend, config, files) ?? ofBackend[0];
}

/** The one that the config means by its platform or its file, or that the files of a version show. */
function meantOf(
  candidates: readonly Platform[],
  { platform, defaultModelFilename }: ModelConfig,
  files: readonly string[],
): Platform | undefined {
  if (platform !== "") return candidates.find((known) => known.platform === platform);
  if (defaultModelFilename !== "") {
    return candidates.find(({ extension }) => defaultModelFilename.endsWith(extension));
  }
  // A model may be a directory of its own: `model.onnx/model.onnx`.
  const present = new Set(files.map((file) => file.split("/", 1)[0]));
  return candidates.find(({ fileName }) => present.has(fileName));
}

/** What the settings that a config leaves open depend on. */
export interface NormaliseOptions {
  /** GPUs that instances may use. */
  readonly gpuCount: number;
}

/** Makes every default that has an effect visible, so that `/config` shows what is in force. */
export function normaliseConfig(config: ModelConfig, options: NormaliseOptions): ModelConfig {
  const { dynamicBatching, sequenceBatching, maxBatchSize, versionPolicy } = config;
  const common = { ...config, versionPolicy: versionOrLatest(versionPolicy) };
  if (isEnsemble(config)) {
    return {
      ...common,
      modelTransactionPolicy: config.modelTransactionPolicy ?? { decoupled: false },
    };
  }
  return {
    ...common,
    optimization: normaliseOptimization(config.optimization),
    ...(dynamicBatching && { dynamicBatching: withPreferred(dynamicBatching, maxBatchSize) }),
    ...(sequenceBatching && {
      sequenceBatching: normaliseSequence(sequenceBatching, maxBatchSize),
    }),
    instanceGroup: normaliseInstances(config, options),
  };
}

function versionOrLatest(
  policy: ModelConfig["versionPolicy"],
): NonNullable<ModelConfig["versionPolicy"]> {
  const isSet = policy?.latest ?? policy?.all ?? policy?.specific;
  return policy && isSet ? policy : { latest: { numVersions: 1 } };
}

function normaliseOptimization(given?: ModelOptimizationPolicy): ModelOptimizationPolicy {
  return {
    priority: "PRIORITY_DEFAULT",
    gatherKernelBufferThreshold: 0,
    eagerBatching: false,
    ...given,
    inputPinnedMemory: given?.inputPinnedMemory ?? { enable: true },
    outputPinnedMemory: given?.outputPinnedMemory ?? { enable: true },
  };
}

function normaliseSequence(
  given: ModelSequenceBatching,
  maxBatchSize: number,
): ModelSequenceBatching {
  return {
    ...given,
    ...(given.oldest && { oldest: withPreferred(given.oldest, maxBatchSize) }),
    maxSequenceIdleMicroseconds: given.maxSequenceIdleMicroseconds || 1_000_000,
  };
}

function withPreferred<T extends Pick<ModelDynamicBatching, "preferredBatchSize">>(
  batching: T,
  maxBatchSize: number,
): T {
  const isOpen = batching.preferredBatchSize.length === 0 && maxBatchSize > 0;
  return isOpen ? { ...batching, preferredBatchSize: [maxBatchSize] } : batching;
}

function normaliseInstances(
  config: ModelConfig,
  options: NormaliseOptions,
): readonly ModelInstanceGroup[] {
  if (config.instanceGroup.length === 0) {
    return [normaliseGroup({ ...emptyGroup, name: config.name }, config, options)];
  }
  return config.instanceGroup.map((group, i) =>
    normaliseGroup({ ...group, name: group.name || `${config.name}_${i}` }, config, options),
  );
}

const emptyGroup: ModelInstanceGroup = {
  name: "",
  kind: "KIND_AUTO",
  count: 0,
  gpus: [],
  secondaryDevices: [],
  profile: [],
  passive: false,
  hostPolicy: "",
};

function normaliseGroup(
  group: ModelInstanceGroup,
  config: ModelConfig,
  { gpuCount }: NormaliseOptions,
): ModelInstanceGroup {
  const kind = group.kind === "KIND_AUTO" ? automaticKind(group, gpuCount) : group.kind;
  const allGpus = Array.from({ length: gpuCount }, (_, gpu) => gpu);
  return {
    ...group,
    kind,
    count: group.count >= 1 ? group.count : defaultCount(config, kind),
    gpus: kind === "KIND_GPU" && group.gpus.length === 0 ? allGpus : group.gpus,
  };
}

function automaticKind(group: ModelInstanceGroup, gpuCount: number): "KIND_GPU" | "KIND_CPU" {
  return gpuCount > 0 && group.gpus.every((gpu) => gpu < gpuCount) ? "KIND_GPU" : "KIND_CPU";
}

/** Two on a CPU, so that one request's edges overlap with another's run, where a backend gains by it. */
function defaultCount(config: ModelConfig, kind: ModelInstanceGroup["kind"]): number {
  return kind === "KIND_CPU" && config.backend === "onnxruntime" ? 2 : 1;
}
