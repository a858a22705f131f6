import type { ModelInstanceGroup } from "../../protocol/model-config.ts";

/** One instance group on the CPU. */
export function cpuGroup(count = 1): ModelInstanceGroup {
  return {
    name: "m",
    kind: "KIND_CPU",
    count,
    gpus: [],
    secondaryDevices: [],
    profile: [],
    passive: false,
    hostPolicy: "",
  };
}
