/** Which model a process runs, and with what. */
export interface LinkSettings {
  readonly modelName: string;
  readonly modelVersion: string;
  /** With the folder of the version in it. */
  readonly modelDirectory: string;
  readonly versionDirectory: string;
  readonly fileName: string;
  /** The module of the runner that runs the file; without one the file is the model's own module. */
  readonly framework?: string;
  readonly python: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** What an instance says of itself to its model. */
export interface InstanceIdentity {
  /** As errors and logs name it. */
  readonly name: string;
  readonly kind: "CPU" | "GPU" | "MODEL";
  readonly deviceId: number;
  /** JSON, as a model reads it. */
  readonly config: string;
}
