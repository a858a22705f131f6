import type { ResourceLimit } from "../pool/rate-limiter/resources.ts";
import type { FlagType } from "./flag-type.ts";

const written = /^(?<name>[^:]+):(?<count>\d{1,9})(?::(?<device>\d{1,9}))?$/u;

/** As in `R1:4`, so much on each device and of what is global, or `R1:4:0`, on one device. */
export const resourceLimit: FlagType<ResourceLimit> = {
  name: "name:count or name:count:device",
  parse(given) {
    const { name, count, device } = written.exec(given)?.groups ?? {};
    if (name === undefined) return undefined;
    return { name, count: Number(count), ...(device !== undefined && { device: Number(device) }) };
  },
};
