/**
 * A model's settings: the fields of Triton's `ModelConfig` message in camelCase, as `protocol/proto/model-config.proto`
 * numbers them. Scalars, lists and maps are always present with their default; a message that was not given is absent.
 * 64-bit numbers are plain numbers: no sensible setting comes near 2^53; larger ones are held at 2^53 - 1.
 */
export interface ModelConfig {
  readonly name: string;
  readonly platform: string;
  readonly backend: string;
  readonly runtime: string;
  readonly versionPolicy?: ModelVersionPolicy;
  /** 0: requests carry no batch dimension. */
  readonly maxBatchSize: number;
  readonly input: readonly ModelInput[];
  readonly output: readonly ModelOutput[];
  readonly batchInput: readonly BatchInput[];
  readonly batchOutput: readonly BatchOutput[];
  readonly optimization?: ModelOptimizationPolicy;
  readonly dynamicBatching?: ModelDynamicBatching;
  readonly sequenceBatching?: ModelSequenceBatching;
  readonly ensembleScheduling?: ModelEnsembling;
  readonly instanceGroup: readonly ModelInstanceGroup[];
  readonly defaultModelFilename: string;
  readonly ccModelFilenames: Readonly<Record<string, string>>;
  readonly metricTags: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, { readonly stringValue: string }>>;
  readonly modelWarmup: readonly ModelWarmup[];
  readonly modelOperations?: { readonly opLibraryFilename: readonly string[] };
  readonly modelTransactionPolicy?: { readonly decoupled: boolean };
  readonly modelRepositoryAgents?: { readonly agents: readonly NamedParameters[] };
  readonly responseCache?: { readonly enable: boolean };
  readonly modelMetrics?: { readonly metricControl: readonly MetricControl[] };
}

/** Exactly one of the three. */
export interface ModelVersionPolicy {
  readonly latest?: { readonly numVersions: number };
  readonly all?: Readonly<Record<string, never>>;
  readonly specific?: { readonly versions: readonly number[] };
}

export interface ModelInput {
  readonly name: string;
  /** `TYPE_FP32` and the like. */
  readonly dataType: string;
  readonly format: "FORMAT_NONE" | "FORMAT_NHWC" | "FORMAT_NCHW";
  /** Without the batch dimension; -1 is variable. */
  readonly dims: readonly number[];
  readonly reshape?: { readonly shape: readonly number[] };
  readonly isShapeTensor: boolean;
  readonly allowRaggedBatch: boolean;
  readonly optional: boolean;
  readonly isNonLinearFormatIo: boolean;
}

export interface ModelOutput {
  readonly name: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  readonly reshape?: { readonly shape: readonly number[] };
  readonly labelFilename: string;
  readonly isShapeTensor: boolean;
  readonly isNonLinearFormatIo: boolean;
}

export interface BatchInput {
  readonly kind:
    | "BATCH_ELEMENT_COUNT"
    | "BATCH_ACCUMULATED_ELEMENT_COUNT"
    | "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"
    | "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"
    | "BATCH_ITEM_SHAPE"
    | "BATCH_ITEM_SHAPE_FLATTEN";
  readonly targetName: readonly string[];
  readonly dataType: string;
  readonly sourceInput: readonly string[];
}

export interface BatchOutput {
  readonly targetName: readonly string[];
  readonly kind: "BATCH_SCATTER_WITH_INPUT_SHAPE";
  readonly sourceInput: readonly string[];
}

export interface ModelOptimizationPolicy {
  readonly graph?: { readonly level: number };
  readonly priority: "PRIORITY_DEFAULT" | "PRIORITY_MAX" | "PRIORITY_MIN";
  readonly cuda?: CudaOptimization;
  readonly executionAccelerators?: {
    readonly gpuExecutionAccelerator: readonly NamedParameters[];
    readonly cpuExecutionAccelerator: readonly NamedParameters[];
  };
  readonly inputPinnedMemory?: { readonly enable: boolean };
  readonly outputPinnedMemory?: { readonly enable: boolean };
  readonly gatherKernelBufferThreshold: number;
  readonly eagerBatching: boolean;
}

type GraphShapes = Readonly<Record<string, { readonly dim: readonly number[] }>>;

export interface CudaOptimization {
  readonly graphs: boolean;
  readonly busyWaitEvents: boolean;
  readonly graphSpec: readonly {
    readonly batchSize: number;
    readonly input: GraphShapes;
    readonly graphLowerBound?: { readonly batchSize: number; readonly input: GraphShapes };
  }[];
  readonly outputCopyStream: boolean;
}

export interface NamedParameters {
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
}

export interface ModelQueuePolicy {
  readonly timeoutAction: "REJECT" | "DELAY";
  readonly defaultTimeoutMicroseconds: number;
  readonly allowTimeoutOverride: boolean;
  /** 0: no bound. */
  readonly maxQueueSize: number;
}

export interface ModelDynamicBatching {
  readonly preferredBatchSize: readonly number[];
  readonly maxQueueDelayMicroseconds: number;
  readonly preserveOrdering: boolean;
  /** 0: no priorities. */
  readonly priorityLevels: number;
  readonly defaultPriorityLevel: number;
  readonly defaultQueuePolicy?: ModelQueuePolicy;
  /** By priority level. */
  readonly priorityQueuePolicy: Readonly<Record<string, ModelQueuePolicy>>;
}

/** Exactly one of `direct` and `oldest`; direct when neither was given. */
export interface ModelSequenceBatching {
  readonly direct?: {
    readonly maxQueueDelayMicroseconds: number;
    readonly minimumSlotUtilization: number;
  };
  readonly oldest?: {
    readonly maxCandidateSequences: number;
    readonly preferredBatchSize: readonly number[];
    readonly maxQueueDelayMicroseconds: number;
    readonly preserveOrdering: boolean;
  };
  readonly maxSequenceIdleMicroseconds: number;
  readonly controlInput: readonly {
    readonly name: string;
    readonly control: readonly SequenceControl[];
  }[];
  readonly state: readonly SequenceState[];
  readonly iterativeSequence: boolean;
}

export interface SequenceControl {
  readonly kind:
    | "CONTROL_SEQUENCE_START"
    | "CONTROL_SEQUENCE_READY"
    | "CONTROL_SEQUENCE_END"
    | "CONTROL_SEQUENCE_CORRID";
  readonly int32FalseTrue: readonly number[];
  readonly fp32FalseTrue: readonly number[];
  readonly boolFalseTrue: readonly boolean[];
  readonly dataType: string;
}

export interface SequenceState {
  readonly inputName: string;
  readonly outputName: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  readonly initialState: readonly {
    readonly dataType: string;
    readonly dims: readonly number[];
    readonly zeroData?: boolean;
    readonly dataFile?: string;
    readonly name: string;
  }[];
  readonly useSameBufferForInputOutput: boolean;
  readonly useGrowableMemory: boolean;
}

export interface ModelEnsembling {
  readonly step: readonly {
    readonly modelName: string;
    /** -1: the latest. */
    readonly modelVersion: number;
    readonly inputMap: Readonly<Record<string, string>>;
    readonly outputMap: Readonly<Record<string, string>>;
    readonly modelNamespace: string;
  }[];
  readonly maxInflightRequests: number;
}

export interface ModelInstanceGroup {
  readonly name: string;
  readonly kind: "KIND_AUTO" | "KIND_GPU" | "KIND_CPU" | "KIND_MODEL";
  readonly count: number;
  readonly rateLimiter?: {
    readonly resources: readonly {
      readonly name: string;
      readonly global: boolean;
      readonly count: number;
    }[];
    readonly priority: number;
  };
  readonly gpus: readonly number[];
  readonly secondaryDevices: readonly { readonly kind: "KIND_NVDLA"; readonly deviceId: number }[];
  readonly profile: readonly string[];
  readonly passive: boolean;
  readonly hostPolicy: string;
}

export interface ModelWarmup {
  readonly name: string;
  readonly batchSize: number;
  readonly inputs: Readonly<
    Record<
      string,
      {
        readonly dataType: string;
        readonly dims: readonly number[];
        readonly zeroData?: boolean;
        readonly randomData?: boolean;
        readonly inputDataFile?: string;
      }
    >
  >;
  readonly count: number;
}

export interface MetricControl {
  readonly metricIdentifier?: { readonly family: string };
  readonly histogramOptions?: { readonly buckets: readonly number[] };
}
