import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { RepositoryModel, RepositoryVersion } from "../../repository/repository-model.ts";
import { isEnsemble } from "../../repository/platforms.ts";
import { noVersionChosen } from "../../repository/version-policy.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Slots } from "../../repository/slots.ts";
import type { LoadedVersion, ModelRecord } from "./model-record.ts";
import type { StartVersion } from "../running-version.ts";

export interface LoadEnvironment {
  readonly startVersion: StartVersion;
  readonly slots: Slots;
  readonly log: Logger;
}

/**
 * Brings a model's record to what the repository says: loads what is new or changed beside what serves, then switches
 * all versions at once. If one of them fails, none is switched. Rejects with the reference's text for the failure.
 *
 * @param again load also what serves from the same files: its config is another one.
 */
export async function loadVersions(
  record: ModelRecord,
  model: RepositoryModel,
  again: boolean,
  environment: LoadEnvironment,
): Promise<void> {
  if (model.versions.length === 0) {
    const { message } = noVersionChosen(model.name);
    record.refused(message);
    environment.log.error(message, { model: model.name });
    throw loadFailed(model.name, `${message}\n`);
  }
  warnOfAbsent(model, environment.log);
  const serving = again ? [] : record.serving();
  const kept = serving.filter((loaded) => model.versions.some((wanted) => same(loaded, wanted)));
  const missing = model.versions.filter(
    (wanted) => !kept.some(({ version }) => version === wanted.version),
  );
  record.loading(missing.map(({ version }) => version));
  const attempts = await Promise.all(
    missing.map((wanted) => environment.slots.run(() => attempt(model, wanted, environment))),
  );
  const loaded = attempts.flatMap((result) => ("running" in result ? [result] : []));
  const failed = attempts.flatMap((result) => ("running" in result ? [] : [result]));
  if (failed.length === 0) {
    void record.serve([...kept, ...loaded]);
    return;
  }
  for (const version of loaded) void record.abandon(version);
  for (const { version, reason } of failed) record.failed(version, reason);
  const lines = failed.map(
    ({ version, reason }) => `version ${version} is at UNAVAILABLE state: ${reason};\n`,
  );
  throw loadFailed(model.name, lines.join(""));
}

/**
 * Opens versions that nobody may see yet and ends them again. Rejects with the reason that one of them cannot be served;
 * what serves is not touched.
 */
export async function probeVersions(
  model: RepositoryModel,
  environment: LoadEnvironment,
): Promise<void> {
  const probe = async (wanted: RepositoryVersion): Promise<void> => {
    // What was uploaded is checked as it is fetched, and ensembles are opened without that.
    if (isEnsemble(model.config)) await (await wanted.fetch()).release();
    const { running } = await loadVersion(model, wanted, environment);
    running.close().catch((err: unknown) => environment.log.error("a probe did not end", { err }));
  };
  for (const wanted of model.versions) await environment.slots.run(() => probe(wanted));
}

interface FailedVersion {
  readonly version: number;
  readonly reason: string;
}

/** The policy may name versions that nobody has put there. */
function warnOfAbsent({ name, config, versions }: RepositoryModel, log: Logger): void {
  const there = new Set(versions.map(({ version }) => version));
  for (const version of config.versionPolicy?.specific?.versions ?? [])
    if (!there.has(version))
      log.warn(
        `model '${name}': version ${version} of its version policy is not in the repository`,
        { model: name },
      );
}

function same(loaded: LoadedVersion, wanted: RepositoryVersion): boolean {
  return loaded.version === wanted.version && loaded.fingerprint === wanted.fingerprint;
}

/** Loads one version, and tells the log how that went. */
async function attempt(
  model: RepositoryModel,
  wanted: RepositoryVersion,
  environment: LoadEnvironment,
): Promise<LoadedVersion | FailedVersion> {
  const { log } = environment;
  const { version } = wanted;
  const about = { model: model.name, version: String(version) };
  log.info("model version is loading", about);
  try {
    const began = performance.now();
    const loaded = await loadVersion(model, wanted, environment);
    const seconds = (performance.now() - began) / 1000;
    loaded.running.statistics.loaded(seconds);
    log.info("model version is ready", { ...about, loadSeconds: Number(seconds.toFixed(3)) });
    return loaded;
  } catch (error) {
    log.error("model version failed to load", { ...about, err: error });
    return { version, reason: InferenceError.from(error).message };
  }
}

async function loadVersion(
  { name, config, files, staged }: RepositoryModel,
  wanted: RepositoryVersion,
  { startVersion }: LoadEnvironment,
): Promise<LoadedVersion> {
  const { version, fingerprint, digest } = wanted;
  const running = await startVersion({
    name,
    version: String(version),
    config,
    fingerprint,
    ...(files && { files }),
    ...(staged !== undefined && { staged }),
    digest,
    fetch: (options) => wanted.fetch(options),
  });
  return { version, fingerprint, running };
}

/** How a load is refused, in the reference's words. */
export function loadFailed(name: string, reasons: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, `load failed for model '${name}': ${reasons}`);
}
