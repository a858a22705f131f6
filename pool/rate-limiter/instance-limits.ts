import type { ModelInstanceGroup } from "../../protocol/model-config.ts";
import type { Device } from "../devices.ts";
import type { InstanceLimits } from "./rate-limiter.ts";
import type { ResourceNeed } from "./resources.ts";

/** What a config's `rate_limiter` asks for an instance on a device. */
export function instanceLimits({
  device,
  rateLimiter,
}: Pick<ModelInstanceGroup, "rateLimiter"> & { readonly device: Device }): InstanceLimits {
  // As in the reference, where the CPU is device 0, too.
  const id = device.kind === "gpu" ? device.id : 0;
  const needs = new Map<string, ResourceNeed>();
  for (const { name, global, count } of rateLimiter?.resources ?? []) {
    // The last entry of a name is the one that counts.
    needs.set(`${global} ${name}`, { name, device: global ? undefined : id, count });
  }
  return { needs: [...needs.values()], priority: rateLimiter?.priority ?? 0 };
}
