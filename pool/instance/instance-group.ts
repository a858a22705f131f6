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

/** Each is a thread with a copy of the model. */
const maxInstances = 256;

interface Placement {
  readonly name: string;
  readonly device: Device;
}

/**
 * Starts all instances that a config asks for, side by side; if one cannot load, none stays and the reason is thrown.
 *
 * @param savedGraph folder of the optimised graph, if there is one
 */
export async function startInstances(
  source: FetchedVersion,
  model: ServedModel,
  savedGraph?: string,
): Promise<InstanceGroup> {
  checkBackend(model.config);
  const placements = placeInstances(model, await gpuIds());
  const group = new ThreadGroup();
  const batcher = new Batcher(model);
  const onCpu = placements.filter(({ device }) => device.kind === "cpu").length;
  const started = await Promise.allSettled(
    placements.map(({ name, device }) =>
      ThreadInstance.start({
        name,
        batcher,
        onRoom: () => group.hasRoom(),
        settings: {
          modelName: model.name,
          config: model.config,
          versionDirectory: source.versionDirectory,
          ...(savedGraph !== undefined && { savedGraph }),
          device,
          cores: Math.max(1, Math.floor(availableParallelism() / Math.max(1, onCpu))),
        },
      }),
    ),
  );
  for (const one of started) if (one.status === "fulfilled") group.add(one.value);
  const failed = started.find((one) => one.status === "rejected");
  if (!failed) return group;
  await group.close();
  throw InferenceError.from(failed.reason);
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
      .map((device, i) => ({ name: `${group.name}_${i}`, device })),
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

class ThreadGroup implements InstanceGroup {
  readonly #instances: ThreadInstance[] = [];
  #listener: () => void = () => {};

  get instances(): readonly ModelInstance[] {
    return this.#instances;
  }

  get healthy(): boolean {
    return this.#instances.some(({ alive }) => alive);
  }

  add(instance: ThreadInstance): void {
    this.#instances.push(instance);
  }

  next(): ModelInstance | undefined {
    let least: ThreadInstance | undefined;
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
