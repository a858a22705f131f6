import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { PythonOptions } from "./options.ts";

const run = promisify(execFile);
const unpackMilliseconds = 600_000;
/** Refuses what would leave the folder. */
const program = `
import sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    archive.extractall(sys.argv[2], filter="tar")
`;

/**
 * Unpacks an environment that comes as one file, as conda-pack makes it; once for the same file. Gives its folder.
 *
 * @param subject what an error begins with
 */
export async function unpackedEnvironment(
  file: string,
  subject: string,
  { python, cacheDirectory }: Pick<PythonOptions, "python" | "cacheDirectory">,
): Promise<string> {
  const { size, mtimeMs } = await stat(file);
  const name = createHash("sha256")
    .update(`${file}\0${size}\0${mtimeMs}`)
    .digest("hex")
    .slice(0, 32);
  const environments = path.join(cacheDirectory, "python-environments-1");
  const folder = path.join(environments, name);
  if (await exists(folder)) return folder;
  await mkdir(environments, { recursive: true, mode: 0o700 });
  const work = await mkdtemp(path.join(environments, "unpacking-"));
  try {
    await run(python, ["-c", program, file, work], { timeout: unpackMilliseconds });
    await rename(work, folder).catch(async (error: unknown) => {
      // Another model may have been faster.
      if (!(await exists(folder))) throw error;
    });
    return folder;
  } catch (cause) {
    const text = `${subject}, which cannot be unpacked`;
    throw new InferenceError(StatusCode.InvalidArg, text, { cause });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function exists(folder: string): Promise<boolean> {
  return (await stat(folder).catch(() => undefined))?.isDirectory() ?? false;
}
