import { gpuIds, useGpus } from "../pool/devices.ts";
import type { PoolDevice } from "./pool-file/pool.ts";
import { UsageError } from "./usage-error.ts";

/** Keeps this process to the device of its pool; throws a UsageError when the machine has no such device. */
export async function usePoolDevice(pool: string, device: PoolDevice): Promise<void> {
  if (device.kind === "auto") return;
  if (device.kind === "cpu") {
    useGpus([]);
    return;
  }
  const { id } = device;
  const known = await gpuIds();
  if (known.length > 0 && (id === undefined || known.includes(id))) {
    if (id !== undefined) useGpus([id]);
    return;
  }
  const given = id === undefined ? "gpu" : `gpu:${id}`;
  const expected = known.length > 0 ? known.map((one) => `gpu:${one}`).join(", ") : "cpu or auto";
  throw new UsageError(
    `pool '${pool}': given device ${given}, which this machine does not have, expected ${expected}`,
  );
}
