import { readFile } from "node:fs/promises";
import { UsageError } from "./usage-error.ts";

/** The certificate or key that a flag names; throws a UsageError that names the flag when it cannot be read. */
export async function readPem(flag: string, file = ""): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new UsageError(`--${flag}: given ${file}, which cannot be read`, { cause });
  }
}
