import type { LoadOptions, UnloadOptions } from "../protocol/engine.ts";
import type { Redis } from "../redis/connection.ts";
import { execute } from "../redis/execute.ts";
import { names } from "./names.ts";

/** What was last asked for a model, on whichever gateway. */
export interface ModelWish {
  readonly name: string;
  readonly loaded: boolean;
  /** Grows with every wish for any model. */
  readonly generation: number;
  /** The config that came with the load. */
  readonly config?: string;
  /** Its files have changed, in whatever mode. */
  readonly activated?: true;
  /** The models that an ensemble is composed of are to go with it. */
  readonly unloadDependents?: true;
}

/** For those who missed the word. */
const lookMilliseconds = 2000;
/** Beside the wishes: how many there were. No model has this name. */
const countField = "";

/** In one step, so that what is last in Redis is what was wished last, and nobody sees a number without its wish. */
const write = `
local generation = redis.call("hincrby", KEYS[1], "${countField}", 1)
redis.call("hset", KEYS[1], ARGV[1], generation .. " " .. ARGV[2])
return generation`;

/**
 * Loads and unloads that were asked of one gateway, for all of them, and for those that start later. Every gateway acts on
 * its own; what they share is the order of wishes, and by its generation the version that a pool worker starts for it.
 */
export class ModelControl {
  readonly #commands: Redis;
  readonly #wishes = new Map<string, ModelWish>();
  readonly #listener: (wish: ModelWish) => void;
  readonly #timer: NodeJS.Timeout;
  #seen = 0;
  #looking: Promise<void> = Promise.resolve();

  private constructor(commands: Redis, listener: (wish: ModelWish) => void) {
    this.#commands = commands;
    this.#listener = listener;
    this.#timer = setInterval(() => void this.#look(), lookMilliseconds);
  }

  /** @param listener told of every wish of another gateway */
  static async open(
    commands: Redis,
    subscriber: Redis,
    listener: (wish: ModelWish) => void,
  ): Promise<ModelControl> {
    const control = new ModelControl(commands, listener);
    subscriber.on("message", (channel: string) => {
      if (channel === names.controlChannel) void control.#look();
    });
    await subscriber.subscribe(names.controlChannel);
    for (const wish of await control.#newer()) control.#wishes.set(wish.name, wish);
    return control;
  }

  /** All that was ever wished, by name: what a gateway that starts has to do. */
  get wishes(): ReadonlyMap<string, ModelWish> {
    return this.#wishes;
  }

  /** Of the model's last load on request; 0 when there was none. */
  generation(name: string): number {
    return this.#wishes.get(name)?.generation ?? 0;
  }

  /** Tells all gateways that the model is to be loaded so; this one is not told, because it is the one that asks. */
  async load(
    name: string,
    { config, files }: LoadOptions,
    why: "loaded" | "activated" = "loaded",
  ): Promise<void> {
    const filesKey = names.controlFiles(name);
    const pipeline = this.#commands.pipeline().unlink(filesKey);
    if (files && files.size > 0) {
      pipeline.hset(filesKey, ...[...files].flatMap(([path, bytes]) => [path, Buffer.from(bytes)]));
    }
    await execute(pipeline);
    await this.#tell({
      name,
      loaded: true,
      ...(config !== undefined && { config }),
      ...(why === "activated" && { activated: true }),
    });
  }

  async unload(name: string, { unloadDependents }: UnloadOptions): Promise<void> {
    await this.#commands.unlink(names.controlFiles(name));
    await this.#tell({ name, loaded: false, ...(unloadDependents && { unloadDependents }) });
  }

  /** What a load was asked for with. */
  async options({ name, config }: ModelWish): Promise<LoadOptions> {
    const files = Object.entries(await this.#commands.hgetallBuffer(names.controlFiles(name)));
    return {
      ...(config !== undefined && { config }),
      ...(files.length > 0 && { files: new Map(files) }),
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #tell(wish: Omit<ModelWish, "generation">): Promise<void> {
    const text = JSON.stringify(wish);
    const written = await this.#commands.eval(write, 1, names.control, wish.name, text);
    this.#wishes.set(wish.name, { ...wish, generation: Number(written) });
    await this.#commands.publish(names.controlChannel, "");
  }

  /** One look after the other, so that wishes keep their order. */
  async #look(): Promise<void> {
    const before = this.#looking;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#looking = promise;
    try {
      await before;
      for (const wish of await this.#newer()) {
        this.#wishes.set(wish.name, wish);
        this.#listener(wish);
      }
    } catch {
      // Redis is away: the next look sees what this one missed.
    } finally {
      resolve();
    }
  }

  async #newer(): Promise<readonly ModelWish[]> {
    if (Number(await this.#commands.hget(names.control, countField)) === this.#seen) return [];
    const { [countField]: count, ...wishes } = await this.#commands.hgetall(names.control);
    this.#seen = Number(count);
    return Object.values(wishes)
      .map(readWish)
      .filter(({ name, generation }) => generation > this.generation(name))
      .toSorted((a, b) => a.generation - b.generation);
  }
}

function readWish(text: string): ModelWish {
  const space = text.indexOf(" ");
  return { ...JSON.parse(text.slice(space)), generation: Number(text.slice(0, space)) };
}
