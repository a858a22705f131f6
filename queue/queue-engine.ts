import type { LoadOptions, UnloadOptions } from "../protocol/engine.ts";
import { checkModelName } from "../repository/model-name.ts";
import {
  type RunningModels,
  ServingEngine,
  type ServingOptions,
} from "../serving/serving-engine.ts";
import type { ModelControl, ModelWish } from "./model-control.ts";

export interface QueueEngineOptions extends ServingOptions {
  /** Absent where each gateway follows the repository by itself. */
  readonly control: ModelControl | undefined;
  /** Clients may load and unload; otherwise others are only told of what was uploaded. */
  readonly explicit: boolean;
  /** False while no request could be sent. */
  readonly reachable: () => boolean;
  /** Called before the versions are closed because the gateway ends. */
  readonly leave: () => void;
}

/** A gateway's engine: its versions run elsewhere, and what one gateway is asked to load or unload, all of them do. */
export class QueueEngine extends ServingEngine {
  readonly #control: ModelControl | undefined;
  readonly #explicit: boolean;
  readonly #reachable: () => boolean;
  readonly #leave: () => void;

  constructor(models: RunningModels, options: QueueEngineOptions) {
    super(models, options);
    this.#control = options.control;
    this.#explicit = options.explicit;
    this.#reachable = options.reachable;
    this.#leave = options.leave;
  }

  override async ready(): Promise<boolean> {
    return this.#reachable() && (await super.ready());
  }

  override async load(name: string, options: LoadOptions): Promise<void> {
    checkModelName(name);
    if (this.#explicit) await this.#control?.load(name, options);
    await super.load(name, options);
  }

  override async activate(name: string): Promise<readonly string[]> {
    checkModelName(name);
    await this.#control?.load(name, {}, "activated");
    return super.activate(name);
  }

  override async unload(name: string, options: UnloadOptions): Promise<void> {
    checkModelName(name);
    if (this.#explicit) await this.#control?.unload(name, options);
    await super.unload(name, options);
  }

  /** Does here what was asked of another gateway, or once before; how a load ends is in the index. */
  async follow(wish: ModelWish): Promise<void> {
    const { name, loaded, activated, unloadDependents = false } = wish;
    if (activated) {
      await super.activate(name);
      return;
    }
    // Of another time, when clients could load.
    if (!this.#explicit) return;
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
