import { InferenceError } from "../../protocol/error.ts";
import type { RepositoryModel } from "../../repository/repository-model.ts";
import {
  bindMembers,
  type FindReady,
  type LoadErrors,
  memberNames,
} from "../ensemble/bind-members.ts";
import { isBoundTo } from "../ensemble/start-ensemble.ts";
import type { RunningVersion } from "../running-version.ts";
import { type LoadEnvironment, loadFailed, loadVersions } from "./load-versions.ts";
import type { ModelRecord } from "./model-record.ts";

export interface EnsemblesOptions {
  readonly environment: LoadEnvironment;
  readonly find: FindReady;
  readonly record: (name: string) => ModelRecord;
  /** Runs a task when no other task for the model does. */
  readonly control: <T>(name: string, task: () => Promise<T>) => Promise<T>;
}

/**
 * The ensembles that should answer. They do exactly while the models that they are composed of fit: one whose member
 * goes or changes too much is retired, and comes back as soon as it fits again.
 */
export class Ensembles {
  readonly #options: EnsemblesOptions;
  readonly #wanted = new Map<string, RepositoryModel>();

  constructor(options: EnsemblesOptions) {
    this.#options = options;
  }

  /** What an ensemble is composed of; nothing for any other model. */
  members(name: string): readonly string[] {
    const model = this.#wanted.get(name);
    return model ? memberNames(model.config) : [];
  }

  /** True for a part of some ensemble. */
  use(member: string): boolean {
    return [...this.#wanted.keys()].some((name) => this.members(name).includes(member));
  }

  /** Starts an ensemble whose members have been loaded, or not; to be called in the ensemble's own task. */
  async load(model: RepositoryModel, errors: LoadErrors, again: boolean): Promise<void> {
    const { name } = model;
    const before = this.#wanted.get(name);
    this.#wanted.set(name, model);
    try {
      await this.#start(model, errors, again);
      await before?.release();
    } catch (error) {
      const goesOn = before !== undefined && this.#options.record(name).ready("") !== undefined;
      if (goesOn) this.#wanted.set(name, before);
      await (goesOn ? model : before)?.release();
      throw error;
    }
  }

  /** Keeps in the model's record why its load came to nothing before any version was tried. */
  refusal(name: string, message: string): InferenceError {
    this.#options.record(name).refused(message);
    this.#options.environment.log.error(`ensemble cannot be loaded: ${message}`, { model: name });
    return loadFailed(name, `${message}\n`);
  }

  /** It should not answer any more, or is none any more. */
  async forget(name: string): Promise<void> {
    const model = this.#wanted.get(name);
    this.#wanted.delete(name);
    await model?.release();
  }

  /** Brings every ensemble to where its members are now. */
  async align(): Promise<void> {
    // One may be a part of another, which then has to follow.
    for (let passes = this.#wanted.size; passes > 0; passes--) {
      const changes = [...this.#wanted.keys()].map((name) =>
        this.#options.control(name, () => this.#align(name)).catch(() => false),
      );
      if (!(await Promise.all(changes)).includes(true)) return;
    }
  }

  /** True when something has changed. */
  async #align(name: string): Promise<boolean> {
    const model = this.#wanted.get(name);
    if (!model) return false;
    const record = this.#options.record(name);
    try {
      const members = bindMembers(model.config, this.#options.find);
      if (isServedBy(record, members)) return false;
      await loadVersions(record, model, true, this.#options.environment);
      return true;
    } catch (error) {
      if (record.serving().length === 0) return false;
      const { message } = InferenceError.from(error);
      this.#options.environment.log.warn(`ensemble is unavailable: ${message}`, { model: name });
      void record.serve([]);
      return true;
    }
  }

  async #start(model: RepositoryModel, errors: LoadErrors, again: boolean): Promise<void> {
    const { environment, find } = this.#options;
    const record = this.#options.record(model.name);
    let members: readonly RunningVersion[];
    try {
      members = bindMembers(model.config, find, errors);
    } catch (error) {
      throw this.refusal(model.name, InferenceError.from(error).message);
    }
    await loadVersions(record, model, again || !isServedBy(record, members), environment);
  }
}

function isServedBy(record: ModelRecord, members: readonly RunningVersion[]): boolean {
  const serving = record.serving();
  return serving.length > 0 && serving.every(({ running }) => isBoundTo(running, members));
}
