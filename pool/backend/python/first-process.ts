import type { ModelConfig } from "../../../protocol/model-config.ts";
import type { ServedModel } from "../../../protocol/served-model.ts";
import { configToJson } from "../../../repository/config-json.ts";
import type { Device } from "../../devices.ts";
import type { Placement, StartInstance } from "../../instance/instance-group.ts";
import { PythonInstance } from "./instance.ts";
import type { InstanceIdentity, LinkSettings } from "./link-settings.ts";
import { PythonLink } from "./link.ts";
import type { PythonOptions } from "./options.ts";

/** A process that has imported its model and not initialized it. */
export interface FirstProcess {
  readonly link: PythonLink;
  /** Makes the function that starts instances. */
  readonly starter: (model: ServedModel) => StartInstance;
  /** Ends the process where no instance has it. */
  readonly release: () => Promise<void>;
}

/**
 * Starts a process that is asked about its model before there are instances. The first instance goes on with it, so that
 * nothing is imported twice.
 */
export async function startFirstProcess(
  settings: LinkSettings,
  options: PythonOptions,
): Promise<FirstProcess> {
  const link = await PythonLink.open(settings, options);
  let first: PythonLink | undefined = link;
  const take = (): PythonLink | undefined => {
    const taken = first;
    first = undefined;
    return taken;
  };
  return {
    link,
    starter(model) {
      const open = async (placement: Placement, instance: PythonInstance): Promise<PythonLink> => {
        const own = take() ?? (await PythonLink.open(settings, options));
        await own.initialize(model, identityOf(model, placement), {
          executed: (timings) => instance.executed(timings),
          gone: (error, unbegun) => instance.gone(error, unbegun),
        });
        return own;
      };
      return starter(model, open);
    },
    release: async () => take()?.close(),
  };
}

/** A config as a process reads it. */
export function configJson(config: ModelConfig): string {
  return JSON.stringify(configToJson(config));
}

function starter(
  model: ServedModel,
  open: (placement: Placement, instance: PythonInstance) => Promise<PythonLink>,
): StartInstance {
  return (placement, { onRoom, prepare }) =>
    PythonInstance.start({
      name: placement.name,
      modelName: model.name,
      open: (instance) => open(placement, instance),
      onRoom,
      ...(prepare && { prepare }),
    });
}

function identityOf({ config }: ServedModel, { name, device }: Placement): InstanceIdentity {
  return {
    name,
    kind: kindOf(device),
    deviceId: device.kind === "gpu" ? device.id : 0,
    config: configJson(config),
  };
}

function kindOf(device: Device): InstanceIdentity["kind"] {
  return device.kind === "gpu" ? "GPU" : "CPU";
}
