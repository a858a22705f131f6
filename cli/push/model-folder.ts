import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { UploadFile } from "../../protocol/upload.ts";
import { UsageError } from "../usage-error.ts";

/** A file to be pushed, and where it lies on this machine. */
export interface LocalFile extends Omit<UploadFile, "sha256"> {
  readonly path: string;
}

export interface ModelFolder {
  /** Of the folder: the model's name where none is given. */
  readonly name: string;
  readonly files: readonly LocalFile[];
  /** Hidden files, which are not pushed. */
  readonly skipped: readonly string[];
}

const maxDepth = 16;
const maxFiles = 20_000;
const configFile = "config.pbtxt";

/**
 * Finds what makes up one version in a folder: a model's folder with the folder of a version in it, or a folder of the
 * version's own files, beside which a `config.pbtxt` may lie.
 *
 * @param version the folder of which one, where there are several
 */
export async function readModelFolder(
  folder: string,
  version: number | undefined,
): Promise<ModelFolder> {
  const root = path.resolve(folder);
  const all = await filesBelow(root, folder);
  const hidden = all.filter(isHidden);
  const names = all.filter((name) => !hidden.includes(name));
  const entries = await readdir(root, { withFileTypes: true });
  const versions = entries
    .filter((entry) => entry.isDirectory() && /^[1-9]\d*$/u.test(entry.name))
    .map((entry) => entry.name);
  const chosen = chooseVersion(folder, versions, version);
  const files = await Promise.all(
    names.flatMap((name) => {
      const placed = placeOf(name, versions, chosen);
      return placed ? [localFile(path.join(root, name), placed)] : [];
    }),
  );
  if (files.length === 0)
    throw new UsageError(`push: given ${folder}, which has no files, expected those of a model`);
  return { name: path.basename(root), files, skipped: hidden };
}

/** SHA-256 of a file, as 64 hexadecimal digits. @param onBytes told of bytes that were read */
export async function fileDigest(file: string, onBytes: (bytes: number) => void): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file, { highWaterMark: 512 * 1024 })) {
    hash.update(chunk);
    onBytes(chunk.length);
  }
  return hash.digest("hex");
}

/** A file that is not pushed. */
function isHidden(name: string): boolean {
  return name.split("/").some((segment) => segment.startsWith("."));
}

type Placed = Pick<UploadFile, "name" | "shared">;

/** Where a file belongs, or undefined for one of another version. */
function placeOf(
  name: string,
  versions: readonly string[],
  chosen: string | undefined,
): Placed | undefined {
  const [first = "", ...below] = name.split("/");
  if (chosen === undefined) return { name, shared: name === configFile };
  if (!versions.includes(first) || below.length === 0) return { name, shared: true };
  return first === chosen ? { name: below.join("/"), shared: false } : undefined;
}

/** Undefined where the folder's files are a version's own. */
function chooseVersion(
  folder: string,
  versions: readonly string[],
  wanted: number | undefined,
): string | undefined {
  const [only, ...others] = versions;
  if (only === undefined) return undefined;
  if (wanted !== undefined && versions.includes(String(wanted))) return String(wanted);
  if (others.length === 0) return only;
  const known = versions.toSorted((a, b) => Number(a) - Number(b)).join(", ");
  const given = wanted === undefined ? "nothing" : String(wanted);
  throw new UsageError(`--version: given ${given}, expected one of ${folder}: ${known}`);
}

async function localFile(file: string, placed: Placed): Promise<LocalFile> {
  return { ...placed, path: file, bytes: (await stat(file)).size };
}

/** Paths of files, in their order; links are followed within the folder, so that nothing else leaves the machine. */
async function filesBelow(root: string, shown: string): Promise<readonly string[]> {
  const found: string[] = [];
  const real = await realpath(root).catch(() => root);
  await walk("", 0);
  return found.toSorted();

  async function walk(below: string, depth: number): Promise<void> {
    if (depth > maxDepth || found.length > maxFiles)
      throw new UsageError(`push: given ${shown}, which has more files than a model could`);
    for (const entry of await entriesOf(path.join(root, below), shown)) {
      const name = below === "" ? entry : `${below}/${entry}`;
      const target = await realpath(path.join(root, name)).catch(() => undefined);
      if (target === undefined || !`${target}${path.sep}`.startsWith(path.join(real, path.sep))) {
        if (!isHidden(name)) throw badLink(path.join(root, name), shown);
        found.push(name);
        continue;
      }
      const status = await stat(target);
      if (status.isDirectory()) await walk(name, depth + 1);
      else if (status.isFile()) found.push(name);
    }
  }
}

function badLink(link: string, shown: string): UsageError {
  return new UsageError(
    `push: ${link} is a link that leads out of ${shown}, or nowhere; expected one that stays in it`,
  );
}

async function entriesOf(folder: string, shown: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new UsageError(`push: given ${shown}, which cannot be read as a folder (${reason})`, {
      cause,
    });
  }
}
