import { availableParallelism } from "node:os";
import type { ServedModel } from "../../protocol/served-model.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { ModelInstanceGroup } from "../../protocol/model-config.ts";
import { checkBackend } from "../backend/backends.ts";
import { cpu, gpuIds, type Device } from "../devices.ts";
import type { FetchedVersion } from "../fetched-version.ts";
import { Batcher } from "../scheduler/batch.ts";
import type { InstanceGroup, ModelInstance } from "./model-instance.ts";
import { ThreadInstance } from "./thread-instance.ts";

/** Each is a thread or a process with a copy of the model. */
const maxInstances = 256;

/** One instance: its name, where it runs, and what its group says of the rate limiter. */
export interface Placement extends Pick<ModelInstanceGroup, "rateLimiter"> {
  readonly name: string;
  readonly device: Device;
}

/** An instance as its group sees it. */
export interface RunningInstance extends ModelInstance {
  /** False while it is down or being prepared. */
  readonly alive: boolean;
  /** Executions handed over and not answered. */
  readonly outstanding: number;
  /** Ends it and frees its memory; what still runs is given up. */
  close(): Promise<void>;
}

/** What an instance has from its group. */
export interface InstanceOwner {
  /** To be told when there may be room again. */
  readonly onRoom: () => void;
  /** What it does after each of its starts, before it has room; a start that fails in it has failed. */
  readonly prepare?: (instance: ModelInstance) => Promise<void>;
  /** Its share of the machine's cores. */
  readonly cores: number;
}

/** Starts one instance; rejects with the reason that it could not be. */
export type StartInstance = (
  placement: Placement,
  owner: InstanceOwner,
) => Promise<RunningInstance>;

/** What each instance, by its place among all, does after each of its starts, before it has room. */
export type PrepareInstance = (instance: ModelInstance, place: number) => Promise<void>;

/** How instances start. */
export interface InstancesOptions {
  /** Folder of the optimised graph, if there is one. */
  readonly savedGraph?: string;
  readonly prepare?: PrepareInstance;
}

/** Starts all instances that a config asks for, each a thread. */
export async function startInstances(
  source: FetchedVersion,
  model: ServedModel,
  { savedGraph, prepare }: InstancesOptions = {},
): Promise<InstanceGroup> {
  return startGroup(model, threadStarter(source, model, savedGraph), prepare);
}

/**
 * Starts all instances that a config asks for, side by side and in the order of their placements; if one cannot load,
 * none stays and the reason is thrown.
 */
export async function startGroup(
  model: ServedModel,
  start: StartInstance,
  prepare?: PrepareInstance,
): Promise<InstanceGroup> {
  const placements = placeInstances(model, await gpuIds());
  const group = new StartedInstances();
  const onCpu = placements.filter(({ device }) => device.kind === "cpu").length;
  const cores = Math.max(1, Math.floor(availableParallelism() / Math.max(1, onCpu)));
  const started = await Promise.allSettled(
    placements.map((placement, place) =>
      start(placement, {
        cores,
        onRoom: () => group.hasRoom(),
        ...(prepare && { prepare: (instance) => prepare(instance, place) }),
      }),
    ),
  );
  for (const one of started) if (one.status === "fulfilled") group.add(one.value);
  const failed = started.find((one) => one.status === "rejected");
  if (!failed) return group;
  await group.close();
  throw InferenceError.from(failed.reason);
}

/** Makes the function that starts instances whose backend runs in a thread of this process. */
export function threadStarter(
  source: FetchedVersion,
  model: ServedModel,
  savedGraph: string | undefined,
): StartInstance {
  checkBackend(model.config);
  const batcher = new Batcher(model);
  return ({ name, device }, { cores, ...owner }) =>
    ThreadInstance.start({
      ...owner,
      name,
      batcher,
      settings: {
        modelName: model.name,
        config: model.config,
        versionDirectory: source.versionDirectory,
        ...(savedGraph !== undefined && { savedGraph }),
        device,
        cores,
      },
    });
}

/**
 * One entry for each instance: `count` for every device of every group.
 * Throws INVALID_ARG for a group without a usable device, and for more instances than a server should hold.
 */
export function placeInstances(model: ServedModel, gpus: readonly number[]): readonly Placement[] {
  const groups = model.config.instanceGroup
    .filter(({ passive }) => !passive)
    .map((group) => ({ group, devices: devicesOf(model.name, group, gpus) }));
  const total = groups.reduce((sum, { group, devices }) => sum + group.count * devices.length, 0);
  if (total > maxInstances) {
    const text = `model '${model.name}': instance groups ask for ${total} instances, expected at most ${maxInstances}`;
    throw new InferenceError(StatusCode.InvalidArg, text);
  }
  return groups.flatMap(({ group, devices }) =>
    devices
      .flatMap((device) => Array.from({ length: group.count }, () => device))
      .map((device, i) => ({
        name: `${group.name}_${i}`,
        device,
        ...(group.rateLimiter && { rateLimiter: group.rateLimiter }),
      })),
  );
}

function devicesOf(
  modelName: string,
  group: ModelInstanceGroup,
  gpus: readonly number[],
): readonly Device[] {
  if (group.kind === "KIND_CPU" || group.kind === "KIND_MODEL") return [cpu];
  if (group.kind === "KIND_AUTO" && gpus.length === 0) return [cpu];
  const subject = `instance group ${group.name} of model ${modelName} has kind ${group.kind}`;
  if (gpus.length === 0)
    throw new InferenceError(StatusCode.InvalidArg, `${subject} but no GPUs are available`);
  const unknown = group.gpus.find((id) => !gpus.includes(id));
  if (unknown !== undefined) {
    const text = `${subject} and names GPU ${unknown}, available: ${gpus.join(", ")}`;
    throw new InferenceError(StatusCode.InvalidArg, text);
  }
  return (group.gpus.length > 0 ? group.gpus : gpus).map((id) => ({
    kind: "gpu",
    id,
    orCpu: group.kind === "KIND_AUTO",
  }));
}

class StartedInstances implements InstanceGroup {
  readonly #instances: RunningInstance[] = [];
  #listener: () => void = () => {};

  get instances(): readonly ModelInstance[] {
    return this.#instances;
  }

  get healthy(): boolean {
    return this.#instances.some(({ alive }) => alive);
  }

  add(instance: RunningInstance): void {
    this.#instances.push(instance);
  }

  next(): ModelInstance | undefined {
    let least: RunningInstance | undefined;
    for (const instance of this.#instances) {
      if (!instance.hasRoom) continue;
      if (!least || instance.outstanding < least.outstanding) least = instance;
    }
    return least;
  }

  onRoom(listener: () => void): void {
    this.#listener = listener;
  }

  hasRoom(): void {
    this.#listener();
  }

  async close(): Promise<void> {
    this.#listener = () => {};
    await Promise.all(this.#instances.map((instance) => instance.close()));
  }
}
