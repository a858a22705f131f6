import type { LoadOptions, UnloadOptions } from "../protocol/engine.ts";
import { checkModelName } from "../repository/model-name.ts";
import {
  type RunningModels,
  ServingEngine,
  type ServingOptions,
} from "../serving/serving-engine.ts";
import type { ModelControl, ModelWish } from "./model-control.ts";

export interface QueueEngineOptions extends ServingOptions {
  /** Absent where the repository alone decides what is loaded: each gateway reads it. */
  readonly control: ModelControl | undefined;
  /** Called before the versions are closed because the gateway ends. */
  readonly leave: () => void;
}

/** A gateway's engine: its versions run elsewhere, and what one gateway is asked to load or unload, all of them do. */
export class QueueEngine extends ServingEngine {
  readonly #control: ModelControl | undefined;
  readonly #leave: () => void;

  constructor(models: RunningModels, options: QueueEngineOptions) {
    super(models, options);
    this.#control = options.control;
    this.#leave = options.leave;
  }

  override async load(name: string, options: LoadOptions): Promise<void> {
    checkModelName(name);
    await this.#control?.load(name, options);
    await super.load(name, options);
  }

  override async unload(name: string, options: UnloadOptions): Promise<void> {
    checkModelName(name);
    await this.#control?.unload(name, options);
    await super.unload(name, options);
  }

  /** Does here what was asked of another gateway, or once before; how a load ends is in the index. */
  async follow(wish: ModelWish): Promise<void> {
    const { name, loaded, unloadDependents = false } = wish;
    // Also for those that have none: so wishes keep their order.
    const options = (await this.#control?.options(wish)) ?? {};
    if (loaded) await super.load(name, options);
    else await super.unload(name, { unloadDependents });
  }

  override async close(signal: AbortSignal): Promise<void> {
    this.#leave();
    this.#control?.close();
    await super.close(signal);
  }
}
