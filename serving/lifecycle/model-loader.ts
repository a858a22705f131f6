import type { LoadOptions } from "../../protocol/engine.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { checkConfig } from "../../repository/config-check/check-config.ts";
import type { ModelRepository } from "../../repository/model-repository.ts";
import { isEnsemble } from "../../repository/platforms.ts";
import type { RepositoryModel } from "../../repository/repository-model.ts";
import { type LoadErrors, memberNames } from "../ensemble/bind-members.ts";
import type { Ensembles, EnsemblesOptions } from "./ensembles.ts";
import { LoadRound } from "./load-round.ts";
import { loadVersions } from "./load-versions.ts";
import type { ModelRecord } from "./model-record.ts";

export interface ModelLoaderOptions extends EnsemblesOptions {
  readonly repository: ModelRepository;
  readonly ensembles: Ensembles;
  /** Called for a model that could not be loaded. */
  readonly failed: (name: string) => Promise<void>;
}

/** Reads models and loads them, those that an ensemble is composed of before the ensemble. */
export class ModelLoader {
  readonly #options: ModelLoaderOptions;

  constructor(options: ModelLoaderOptions) {
    this.#options = options;
  }

  /** Resolves when the model answers from what the repository and the options say now. */
  load(name: string, options: LoadOptions): Promise<void> {
    return this.#load(name, new LoadRound(), options);
  }

  /** Loads each of them; gives the errors of those that could not be loaded. */
  loadAll(names: readonly string[]): Promise<LoadErrors> {
    return this.#loadEach(names, new LoadRound());
  }

  async #loadEach(names: readonly string[], round: LoadRound): Promise<LoadErrors> {
    const outcomes = await Promise.all(
      names.map((name) =>
        this.#load(name, round, {}).then(
          () => [],
          (error: unknown) => [[name, InferenceError.from(error)] as const],
        ),
      ),
    );
    return new Map(outcomes.flat());
  }

  #load(name: string, round: LoadRound, options: LoadOptions): Promise<void> {
    return round.once(name, async () => {
      try {
        const ensemble = await this.#options.control(name, () =>
          this.#loadUnlessEnsemble(name, options),
        );
        if (ensemble) await this.#loadEnsemble(ensemble, round, options);
      } catch (error) {
        await this.#options.failed(name);
        throw error;
      }
    });
  }

  async #loadUnlessEnsemble(
    name: string,
    options: LoadOptions,
  ): Promise<RepositoryModel | undefined> {
    const { ensembles, environment } = this.#options;
    const record = this.#options.record(name);
    const model = await this.#read(record, options);
    if (isEnsemble(model.config)) return model;
    await ensembles.forget(name);
    const again = options.config !== undefined;
    await loadVersions(record, model, again, environment).finally(() => model.release());
    return undefined;
  }

  async #read(record: ModelRecord, options: LoadOptions): Promise<RepositoryModel> {
    const { name } = record;
    const { repository, environment } = this.#options;
    try {
      const model = await repository.read(name, options);
      if (isEnsemble(model.config)) checkConfig(model.config, name);
      return model;
    } catch (cause) {
      const { message } = InferenceError.from(cause);
      environment.log.error("model cannot be read from its repository", {
        model: name,
        err: cause,
      });
      record.refused(message);
      throw new InferenceError(
        StatusCode.Internal,
        `failed to load '${name}', failed to poll from model repository: ${message}`,
        { cause },
      );
    }
  }

  /** Waits for the members outside of the ensemble's own task, because theirs may wait for it. */
  async #loadEnsemble(
    ensemble: RepositoryModel,
    round: LoadRound,
    options: LoadOptions,
  ): Promise<void> {
    const { name, config } = ensemble;
    const { ensembles, control } = this.#options;
    const members = memberNames(config);
    const last = round.waits(name, members);
    if (last !== undefined) {
      await ensemble.release();
      const circle = `circular dependency between ensembles: ${name} -> ... -> ${last} -> ${name}`;
      throw ensembles.refusal(name, circle);
    }
    const errors = await this.#loadEach(members, round);
    const again = options.config !== undefined;
    await control(name, () => ensembles.load(ensemble, errors, again));
  }
}
