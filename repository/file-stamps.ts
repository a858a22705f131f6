import { createHash } from "node:crypto";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type InferenceError, invalidArgument } from "../protocol/error.ts";

/** Where a file lies below its model's folder, with `/` between folders, and a text that changes when it does. */
export interface FileStamp {
  readonly path: string;
  readonly stamp: string;
  readonly isDirectory: boolean;
}

// A model has a handful of files. Links are followed, so a loop of them would never end without these.
const maxEntries = 20_000;
const maxDepth = 16;

/** Lists everything below a folder, links followed, in the order of paths; what vanishes meanwhile is left out. */
export async function fileStamps(root: string): Promise<readonly FileStamp[]> {
  const found: FileStamp[] = [];
  await walk("", 0);
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));

  async function walk(folder: string, depth: number): Promise<void> {
    if (depth > maxDepth) throw tooLarge(`folders within folders, at most ${maxDepth} deep`);
    for (const name of (await unlessGone(readdir(join(root, folder)))) ?? []) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const status = await unlessGone(stat(join(root, path), { bigint: true }));
      if (!status) continue;
      const isDirectory = status.isDirectory();
      // A folder's own time changes with files that a version does not consist of; its name is enough.
      const stamp = isDirectory ? "folder" : `${status.mtimeNs}:${status.size}`;
      found.push({ path, stamp, isDirectory });
      if (found.length > maxEntries) throw tooLarge(`at most ${maxEntries} files`);
      if (isDirectory) await walk(path, depth + 1);
    }
  }
}

/** One short text for many stamps. */
export function fingerprintOf(stamps: readonly FileStamp[]): string {
  const hash = createHash("sha256");
  for (const { path, stamp } of stamps) hash.update(`${path}\0${stamp}\n`);
  return hash.digest("base64url");
}

/** The result of a file operation, or undefined when the file is not (or no longer) there. */
export async function unlessGone<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

function tooLarge(expected: string): InferenceError {
  return invalidArgument(`model folder: given more, expected ${expected}`);
}
