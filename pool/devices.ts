import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Where an instance runs; with `orCpu` on the CPU, when no runtime here can use that GPU. */
export type Device =
  | { readonly kind: "cpu" }
  | { readonly kind: "gpu"; readonly id: number; readonly orCpu: boolean };

export const cpu: Device = { kind: "cpu" };

const run = promisify(execFile);
let found: Promise<readonly number[]> | undefined;

/** The ids of the GPUs to use; none where the vendor's tool is missing or finds nothing. Asked once a process. */
export function gpuIds(): Promise<readonly number[]> {
  found ??= listGpus();
  return found;
}

/** Has this process see only these of the machine's GPUs from now on, with ids from 0, as if there were no others. */
export function useGpus(ids: readonly number[]): void {
  process.env["CUDA_VISIBLE_DEVICES"] = ids.join(",");
  // Otherwise its ids would not be those of the vendor's tool.
  process.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  found = Promise.resolve(ids.map((_, id) => id));
}

async function listGpus(): Promise<readonly number[]> {
  try {
    const { stdout } = await run("nvidia-smi", ["-L"], { timeout: 10_000 });
    return parseGpuList(stdout);
  } catch {
    return [];
  }
}

/** Reads `nvidia-smi -L`: one line `GPU <id>: <name> (UUID: …)` for each device. */
export function parseGpuList(text: string): readonly number[] {
  return [...text.matchAll(/^GPU (\d+):/gm)].map((match) => Number(match[1]));
}
