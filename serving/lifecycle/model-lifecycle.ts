import type { LoadOptions, UnloadOptions } from "../../protocol/engine.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { type RepositoryIndexEntry, ModelState } from "../../protocol/repository-index.ts";
import { checkModelName } from "../../repository/model-name.ts";
import type { ModelRepository } from "../../repository/model-repository.ts";
import { type RepositoryChanges, RepositoryWatch } from "../../repository/watch.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { isEnsemble } from "../../repository/platforms.ts";
import type { ResponseCaching } from "../caching/response-caching.ts";
import {
  type Classifier,
  startEnsemble,
  type StatisticsSharing,
} from "../ensemble/start-ensemble.ts";
import { VersionHolds } from "../ensemble/version-holds.ts";
import { Ensembles } from "./ensembles.ts";
import { findVersion } from "./find-version.ts";
import { indexLines } from "./index-lines.ts";
import { Slots } from "../../repository/slots.ts";
import type { RepositoryModel } from "../../repository/repository-model.ts";
import { type LoadEnvironment, probeVersions } from "./load-versions.ts";
import { ModelLoader } from "./model-loader.ts";
import { type LoadedVersion, ModelRecord } from "./model-record.ts";
import type { RunningVersion, StartVersion } from "../running-version.ts";
import { SerialTasks } from "./serial-tasks.ts";

/** Who decides what is loaded: the repository once, the repository all the time, or the client. */
export type ModelControlMode = "none" | "poll" | "explicit";

export interface LifecycleOptions {
  readonly mode: ModelControlMode;
  /** Between two looks at the repository in poll mode. */
  readonly pollSeconds: number;
  /** Models to load at the start in explicit mode; `*` stands for all. */
  readonly loadModels: readonly string[];
  /** How many versions may load at a time. */
  readonly loadThreadCount: number;
  /** How ensembles answer those who ask for classes. */
  readonly classifier: Classifier;
  /** Puts a cache in front of those versions that want one. */
  readonly caching?: Pick<ResponseCaching, "cached"> | undefined;
  /** Told of each change in poll mode, when it has been followed. @param cause why it could not be */
  readonly followed?: (change: "model.load" | "model.unload", name: string, cause: unknown) => void;
  /** Where other processes run the same ensembles. */
  readonly shareStatistics?: StatisticsSharing;
}

/** A model that could not be loaded at the start, and why. */
export interface LoadFailure {
  readonly name: string;
  readonly error: InferenceError;
}

/**
 * Loads, reloads and unloads models, and knows for every name and version who answers or why nobody does.
 * A reload keeps the old versions answering until the new ones can; what a version has taken it answers before it ends.
 */
export class ModelLifecycle {
  readonly #repository: ModelRepository;
  readonly #options: LifecycleOptions;
  readonly #log: Logger;
  readonly #watch: RepositoryWatch;
  readonly #records = new Map<string, ModelRecord>();
  readonly #ensembles: Ensembles;
  readonly #loader: ModelLoader;
  readonly #environment: LoadEnvironment;
  /** Models that somebody asked for, and not only as a part of an ensemble. */
  readonly #asked = new Set<string>();
  readonly #holds = new VersionHolds();
  readonly #tasks = new SerialTasks();
  readonly #ending = new Set<Promise<void>>();
  #closing = false;

  constructor(
    repository: ModelRepository,
    startVersion: StartVersion,
    options: LifecycleOptions,
    log: Logger,
  ) {
    this.#repository = repository;
    this.#options = options;
    const find = (name: string, version: string): RunningVersion | undefined =>
      this.#records.get(name)?.ready(version);
    const { classifier, shareStatistics } = options;
    const ofEnsembles = { find, holds: this.#holds, classifier, shareStatistics };
    const environment: LoadEnvironment = (this.#environment = {
      startVersion: async (source) => {
        this.#checkOpen(); // it may have waited long for its slot
        const running = isEnsemble(source.config)
          ? await startEnsemble(source, ofEnsembles)
          : await startVersion(source);
        return options.caching?.cached(source, running) ?? running;
      },
      slots: new Slots(options.loadThreadCount),
      log,
    });
    const shared = {
      environment,
      find,
      record: (name: string) => this.#recordOf(name),
      control: <T>(name: string, task: () => Promise<T>) => this.#control(name, task),
    };
    this.#ensembles = new Ensembles(shared);
    this.#loader = new ModelLoader({
      ...shared,
      repository,
      ensembles: this.#ensembles,
      failed: (name) => this.#forgetGone(name).catch(ignore),
    });
    this.#log = log;
    this.#watch = new RepositoryWatch(repository);
  }

  /** Loads what the mode says; resolves when all of it is loaded or has failed. Rejects if no repository can be read. */
  async start(): Promise<readonly LoadFailure[]> {
    const names = await this.#initialNames();
    for (const name of names) this.#asked.add(name);
    const errors = await this.#loader.loadAll(names);
    await this.#ensembles.align();
    if (this.#options.mode === "poll" && !this.#closing) this.#startWatch();
    return [...errors].map(([name, error]) => ({ name, error }));
  }

  /** True from the moment it is told to end: from then on nobody finds a version. */
  get closing(): boolean {
    return this.#closing;
  }

  /** On the way of every request: one look-up in two maps when the version answers. */
  find(name: string, version: string): RunningVersion {
    this.#checkOpen();
    const record = this.#records.get(name);
    return record?.ready(version) ?? findVersion(record, name, version);
  }

  /** The versions of one model that answer, ascending; none for a name that is not known. */
  versions(name: string): readonly RunningVersion[] {
    return (this.#records.get(name)?.serving() ?? []).map(({ running }) => running);
  }

  /** All versions that answer, by model name. */
  running(): readonly RunningVersion[] {
    return [...this.#records.keys()].toSorted().flatMap((name) => this.versions(name));
  }

  /** True when every version that should answer does: what `--strict-readiness` asks. */
  ready(): boolean {
    return [...this.#records.values()].every((record) => record.healthy);
  }

  /** Every model of the repository and every one that was loaded, by name and version. */
  async index(onlyReady: boolean): Promise<readonly RepositoryIndexEntry[]> {
    const listed = onlyReady ? [] : await this.#repository.list();
    const byName = new Map(listed.map((model) => [model.name, model]));
    const names = new Set([...byName.keys(), ...this.#records.keys()]);
    const lines = [...names]
      .toSorted()
      .flatMap((name) => indexLines(name, byName.get(name), this.#records.get(name)));
    return onlyReady ? lines.filter(({ state }) => state === ModelState.Ready) : lines;
  }

  /** Resolves when the model answers from what the repository and the options say now. */
  async load(name: string, options: LoadOptions): Promise<void> {
    this.#checkExplicit();
    checkModelName(name);
    await this.#load(name, options);
  }

  /** The same in every mode, for a model whose files have changed. */
  async activate(name: string): Promise<void> {
    checkModelName(name);
    await this.#load(name, {});
  }

  /** Opens what nobody may see yet, and ends it again; rejects with the reason that it cannot be served. */
  probe(model: RepositoryModel): Promise<void> {
    return probeVersions(model, this.#environment);
  }

  /** Resolves when no new request reaches the model; what it has taken it still answers. */
  async unload(name: string, options: UnloadOptions): Promise<void> {
    this.#checkExplicit();
    await this.#takeOut(name, options.unloadDependents);
    await this.#ensembles.align();
  }

  /** Loads nothing more; resolves when every version has answered what it had and has ended. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#watch.stop();
    const names = [...this.#records.keys()];
    await Promise.all(names.map((name) => this.#tasks.run(name, () => this.#unload(name))));
    await Promise.all(this.#ending);
  }

  async #initialNames(): Promise<readonly string[]> {
    const { mode, loadModels } = this.#options;
    if (mode === "poll") return (await this.#watch.poll()).changed;
    if (mode === "explicit" && !loadModels.includes("*")) return [...new Set(loadModels)];
    return (await this.#repository.list()).map(({ name }) => name);
  }

  #startWatch(): void {
    this.#watch.start(this.#options.pollSeconds * 1000, {
      onChanges: (changes) => this.#follow(changes),
      onError: (error) => this.#log.error("model repository cannot be read", { err: error }),
    });
  }

  /** Returns at once, so that a model which takes long to load does not hide what happens to the others. */
  #follow({ changed, removed }: RepositoryChanges): void {
    const { followed = ignore } = this.#options;
    for (const name of changed) {
      this.#load(name, {}).then(
        () => followed("model.load", name, undefined),
        (cause: unknown) => followed("model.load", name, cause),
      );
    }
    for (const name of removed) {
      this.#control(name, () => this.#unload(name))
        .then(() => this.#ensembles.align())
        .then(
          () => followed("model.unload", name, undefined),
          (cause: unknown) => followed("model.unload", name, cause),
        );
    }
  }

  #control<T>(name: string, task: () => Promise<T>): Promise<T> {
    return this.#tasks.run(name, () => {
      this.#checkOpen();
      return task();
    });
  }

  async #load(name: string, options: LoadOptions): Promise<void> {
    this.#asked.add(name);
    try {
      await this.#loader.load(name, options);
    } finally {
      await this.#ensembles.align();
    }
  }

  /** @param andMembers what an ensemble is composed of goes with it, unless somebody else wants it */
  async #takeOut(name: string, andMembers: boolean): Promise<void> {
    const members = andMembers ? this.#ensembles.members(name) : [];
    await this.#control(name, () => this.#unload(name));
    for (const member of members)
      if (!this.#asked.has(member) && !this.#ensembles.use(member))
        await this.#takeOut(member, true);
  }

  async #unload(name: string): Promise<void> {
    this.#asked.delete(name);
    await this.#ensembles.forget(name);
    const record = this.#records.get(name);
    if (!record) return;
    const ended = record.serve([]);
    ended.then(() => this.#tasks.run(name, () => this.#forgetGone(name))).catch(ignore);
  }

  #recordOf(name: string): ModelRecord {
    const known = this.#records.get(name);
    if (known) return known;
    const record = new ModelRecord(name, (loaded) => this.#retire(name, loaded));
    this.#records.set(name, record);
    return record;
  }

  /** Names come from clients: nothing stays behind of one that neither runs nor is in the repository. */
  async #forgetGone(name: string): Promise<void> {
    const record = this.#records.get(name);
    if (!record?.dormant || (await this.#repository.has(name))) return;
    if (this.#records.get(name) !== record) return;
    this.#records.delete(name);
    this.#asked.delete(name);
    await this.#ensembles.forget(name);
  }

  #retire(name: string, loaded: LoadedVersion): Promise<void> {
    const about = { model: name, version: String(loaded.version) };
    const ended = (async () => {
      await this.#holds.free(loaded.running);
      await loaded.running.close();
      this.#log.info("model version is unloaded", about);
    })().catch((error: unknown) => {
      this.#log.error("model version did not end well", { ...about, err: error });
    });
    this.#ending.add(ended);
    return ended.finally(() => this.#ending.delete(ended));
  }

  #checkOpen(): void {
    if (this.#closing)
      throw new InferenceError(StatusCode.Unavailable, "the server is shutting down");
  }

  #checkExplicit(): void {
    if (this.#options.mode === "explicit") return;
    throw new InferenceError(
      StatusCode.Unavailable,
      "explicit model load / unload is not allowed if polling is enabled",
    );
  }
}

/** For those whose failure is in the log and in the index. */
function ignore(): void {}
