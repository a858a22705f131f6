import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument } from "../protocol/error.ts";

/** A file that a config names by its path below a folder of the model. */
export interface SideFile {
  /** What the config names it for, to begin an error with. */
  readonly subject: string;
  readonly path: string;
  readonly modelDirectory: string;
  /** In the model's directory; absent: that directory. */
  readonly folder?: string;
  readonly maxBytes: number;
}

/** Reads a file beside a model that its config names; throws INVALID_ARG for one that may not or cannot be read. */
export async function readSideFile(file: SideFile): Promise<Buffer> {
  const { path, modelDirectory, folder, maxBytes } = file;
  const subject = `${file.subject}: file '${path}'`;
  const place = folder === undefined ? "the model's directory" : `the model's folder '${folder}'`;
  if (path.startsWith("/") || path.includes("\0") || path.split("/").includes("..")) {
    throw invalidArgument(`${subject} is not below ${place}`);
  }
  const absolute = join(modelDirectory, folder ?? "", path);
  const found = await stat(absolute).catch(() => undefined);
  if (!found?.isFile()) throw invalidArgument(`${subject} does not exist in ${place}`);
  if (found.size > maxBytes) {
    throw invalidArgument(`${subject} has ${found.size} bytes, expected at most ${maxBytes}`);
  }
  return readFile(absolute);
}
