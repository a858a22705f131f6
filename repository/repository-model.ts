import type { ModelConfig } from "../protocol/model-config.ts";
import { inferBackend } from "./complete-config.ts";
import { parseConfigJson } from "./config-json.ts";
import { parseConfigPbtxt } from "./config-pbtxt.ts";
import type { FetchOptions, LocalVersion, ModelStore, StoredModel } from "./model-store.ts";
import { chooseVersions } from "./version-policy.ts";

/** A model as a load finds it: its config understood, its versions chosen, its files not fetched yet. */
export interface RepositoryModel {
  readonly name: string;
  /** Parsed and with its backend known; the model's own graph may still complete it. */
  readonly config: ModelConfig;
  /** Those that the version policy wants, ascending; perhaps none. */
  readonly versions: readonly RepositoryVersion[];
  /** The files that the load request brought along, by path below the model's folder, if it did. */
  readonly files?: ReadonlyMap<string, Uint8Array>;
  /** The upload that it will be made of, if it is not there yet. */
  readonly staged?: string;
  /** The load is over. Versions that were fetched keep their files until they are released themselves. */
  release(): Promise<void>;
}

export interface RepositoryVersion {
  readonly version: number;
  /** Equal texts: the same files. */
  readonly fingerprint: string;
  /** Of what is in the files, where the fingerprint tells only of their times and sizes. */
  readonly digest?: (() => Promise<string>) | undefined;
  fetch(options?: FetchOptions): Promise<LocalVersion>;
}

/**
 * Reads the config, or the JSON given instead of it, and chooses the versions to serve.
 *
 * @param also a version that is wanted whatever the policy says
 */
export function resolveModel(
  store: ModelStore,
  model: StoredModel,
  configJson?: string,
  also?: number,
): RepositoryModel {
  const config = inferBackend(parseConfig(model, configJson), model.name, firstVersionFiles(model));
  const chosen = new Set(
    chooseVersions(
      config.versionPolicy,
      model.versions.map(({ version }) => version),
    ),
  );
  const versions = model.versions
    .filter(({ version }) => chosen.has(version) || version === also)
    .map(({ version, fingerprint }): RepositoryVersion => ({
      version,
      fingerprint,
      digest: store.digest?.bind(store, model.name, version),
      fetch: (options) => store.fetch(model, version, options),
    }));
  return { name: model.name, config, versions, release: async () => {} };
}

function parseConfig(model: StoredModel, configJson: string | undefined): ModelConfig {
  if (configJson !== undefined) return parseConfigJson(configJson);
  return parseConfigPbtxt(model.config?.text ?? "", model.config?.fileName ?? "config.pbtxt");
}

/** The reference looks into the version whose name sorts first as text: "10" before "2". */
function firstVersionFiles(model: StoredModel): readonly string[] {
  const [first] = model.versions.toSorted((a, b) =>
    String(a.version) < String(b.version) ? -1 : 1,
  );
  return first?.files ?? [];
}
