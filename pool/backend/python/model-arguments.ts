import type { ServedModel } from "../../../protocol/served-model.ts";
import type { InstanceIdentity, LinkSettings } from "./link-settings.ts";

/** What the `initialize` of a model is given: texts by the names that the contract has for them. */
export function modelArguments(
  { name, version }: ServedModel,
  identity: InstanceIdentity,
  { modelDirectory }: LinkSettings,
): Readonly<Record<string, string>> {
  return {
    model_config: identity.config,
    model_instance_kind: identity.kind,
    model_instance_name: identity.name,
    model_instance_device_id: String(identity.deviceId),
    model_repository: modelDirectory,
    model_version: version,
    model_name: name,
  };
}
