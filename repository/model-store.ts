/**
 * A place where models rest: a directory, a bucket. It knows files and versions, and nothing of what a config means.
 * Names given to it are checked ones; its errors are InferenceErrors that tell no paths.
 */
export interface ModelStore {
  /** The names of its models, in any order. Rejects when the place cannot be reached, so that nothing looks removed. */
  list(): Promise<readonly string[]>;
  /** One model as it is now, or undefined when there is none of that name. */
  read(name: string): Promise<StoredModel | undefined>;
  /** Brings the files of one version to this machine's disk. */
  fetch(model: StoredModel, version: number, options?: FetchOptions): Promise<LocalVersion>;
  /** Of what is in the files of a version, where fingerprints tell only of their times and sizes. */
  digest?(name: string, version: number): Promise<string>;
  /** The files of a version as they once were, where this machine has kept them; the place itself is not asked. */
  kept?(name: string, version: number, fingerprint: string): Promise<LocalVersion | undefined>;
}

/** How one fetch is watched and given up. */
export interface FetchOptions {
  /** Told again and again while bytes come. */
  readonly onProgress?: (progress: FetchProgress) => void;
  /** Nobody waits for the files any more. */
  readonly signal?: AbortSignal;
}

export interface FetchProgress {
  readonly fetchedBytes: number;
  readonly totalBytes: number;
}

/** A model at rest. */
export interface StoredModel {
  readonly name: string;
  /** Absent when the model has no config file. */
  readonly config?: StoredConfig;
  /** Ascending. */
  readonly versions: readonly StoredVersion[];
  /** Changes when any file of the model changes, comes or goes. */
  readonly fingerprint: string;
}

export interface StoredConfig {
  /** Below the model's folder; errors name it. */
  readonly fileName: string;
  /** In protobuf text format. */
  readonly text: string;
}

export interface StoredVersion {
  readonly version: number;
  /** Names of what lies directly in the version's folder. */
  readonly files: readonly string[];
  /** Changes when any file that this version is made of does: its own, and those that all versions share. */
  readonly fingerprint: string;
}

/** The files of one version on disk; they stay there until they are released. */
export interface LocalVersion {
  readonly modelDirectory: string;
  readonly versionDirectory: string;
  /** The version that used them is closed. */
  release(): Promise<void>;
}
