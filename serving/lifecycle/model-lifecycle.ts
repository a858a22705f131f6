import type { LoadOptions, UnloadOptions } from "../../protocol/engine.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { type RepositoryIndexEntry, ModelState } from "../../protocol/repository-index.ts";
import { checkModelName } from "../../repository/model-name.ts";
import type { ModelRepository } from "../../repository/model-repository.ts";
import type { RepositoryModel } from "../../repository/repository-model.ts";
import { type RepositoryChanges, RepositoryWatch } from "../../repository/watch.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { findVersion } from "./find-version.ts";
import { indexLines } from "./index-lines.ts";
import { Slots } from "../../repository/slots.ts";
import { type LoadEnvironment, loadVersions } from "./load-versions.ts";
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
  readonly #environment: LoadEnvironment;
  readonly #log: Logger;
  readonly #watch: RepositoryWatch;
  readonly #records = new Map<string, ModelRecord>();
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
    this.#environment = {
      startVersion: async (source) => {
        this.#checkOpen(); // it may have waited long for its slot
        return startVersion(source);
      },
      slots: new Slots(options.loadThreadCount),
      log,
    };
    this.#log = log;
    this.#watch = new RepositoryWatch(repository);
  }

  /** Loads what the mode says; resolves when all of it is loaded or has failed. Rejects if no repository can be read. */
  async start(): Promise<readonly LoadFailure[]> {
    const names = await this.#initialNames();
    const outcomes = await Promise.all(
      names.map((name) =>
        this.#control(name, () => this.#load(name)).then(
          () => [],
          (error: unknown) => [{ name, error: InferenceError.from(error) }],
        ),
      ),
    );
    if (this.#options.mode === "poll" && !this.#closing) this.#startWatch();
    return outcomes.flat();
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
    await this.#control(name, () => this.#load(name, options));
  }

  /** Resolves when no new request reaches the model; what it has taken it still answers. */
  async unload(name: string, options: UnloadOptions): Promise<void> {
    this.#checkExplicit();
    const steps = this.versions(name).flatMap(
      ({ model }) => model.config.ensembleScheduling?.step ?? [],
    );
    await this.#control(name, () => this.#unload(name));
    if (!options.unloadDependents) return;
    for (const step of new Set(steps.map(({ modelName }) => modelName)))
      await this.#control(step, () => this.#unload(step));
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
    for (const name of changed) this.#control(name, () => this.#load(name)).catch(ignore);
    for (const name of removed) this.#control(name, () => this.#unload(name)).catch(ignore);
  }

  #control<T>(name: string, task: () => Promise<T>): Promise<T> {
    return this.#tasks.run(name, () => {
      this.#checkOpen();
      return task();
    });
  }

  async #load(name: string, options: LoadOptions = {}): Promise<void> {
    const record = this.#recordOf(name);
    try {
      const model = await this.#read(record, options);
      const again = options.config !== undefined;
      await loadVersions(record, model, again, this.#environment).finally(() => model.release());
    } catch (error) {
      await this.#forgetGone(record).catch(ignore);
      throw error;
    }
  }

  async #read(record: ModelRecord, options: LoadOptions): Promise<RepositoryModel> {
    const { name } = record;
    try {
      return await this.#repository.read(name, options);
    } catch (cause) {
      const { message } = InferenceError.from(cause);
      this.#log.error("model cannot be read from its repository", { model: name, err: cause });
      record.refused(message);
      throw new InferenceError(
        StatusCode.Internal,
        `failed to load '${name}', failed to poll from model repository: ${message}`,
        { cause },
      );
    }
  }

  async #unload(name: string): Promise<void> {
    const record = this.#records.get(name);
    if (!record) return;
    const ended = record.serve([]);
    ended.then(() => this.#tasks.run(name, () => this.#forgetGone(record))).catch(ignore);
  }

  #recordOf(name: string): ModelRecord {
    const known = this.#records.get(name);
    if (known) return known;
    const record = new ModelRecord(name, (loaded) => this.#retire(name, loaded));
    this.#records.set(name, record);
    return record;
  }

  /** Names come from clients: nothing stays behind of one that neither runs nor is in the repository. */
  async #forgetGone(record: ModelRecord): Promise<void> {
    if (!record.dormant || (await this.#repository.has(record.name))) return;
    if (this.#records.get(record.name) === record) this.#records.delete(record.name);
  }

  #retire(name: string, loaded: LoadedVersion): Promise<void> {
    const about = { model: name, version: String(loaded.version) };
    const ended = (async () => {
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
