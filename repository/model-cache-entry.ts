import { readFileSync } from "node:fs";
import { lstat, open, readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { unlessGone } from "./file-stamps.ts";

/** What an entry consists of; written last, so that an entry without it is none. */
export interface CacheManifest {
  readonly files: readonly (readonly [path: string, bytes: number])[];
  /** Of the system that wrote the files. */
  readonly boot: string;
}

const manifestName = "manifest.json";
const syncedName = "synced";
const filesName = "model";
const ownerOnly = 0o600;

/** Below an entry: where its files lie. */
export function filesFolder(entry: string): string {
  return path.join(entry, filesName);
}

/** Tells of what a folder holds, which makes it an entry. */
export async function writeManifest(entry: string): Promise<void> {
  const folder = filesFolder(entry);
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = await Promise.all(
    found
      .filter((file) => file.isFile())
      .map(async (file): Promise<readonly [string, number]> => {
        const name = path.join(file.parentPath, file.name);
        return [path.relative(folder, name), (await lstat(name)).size];
      }),
  );
  await writeFile(path.join(entry, manifestName), JSON.stringify({ files, boot }), {
    mode: ownerOnly,
  });
}

/** Undefined for what is no entry. */
export async function readManifest(entry: string): Promise<CacheManifest | undefined> {
  try {
    const manifest: unknown = JSON.parse(await readFile(path.join(entry, manifestName), "utf8"));
    return isManifest(manifest) ? manifest : undefined;
  } catch {
    return undefined;
  }
}

/** True for an entry with all of its bytes, as far as can be told without reading them. */
export async function isWhole(entry: string): Promise<boolean> {
  const manifest = await readManifest(entry);
  if (!manifest) return false;
  try {
    // A file that had not reached the disk when the system stopped has its size, and perhaps zeros in it.
    if (manifest.boot !== boot) await lstat(path.join(entry, syncedName));
    const folder = filesFolder(entry);
    const sizes = await Promise.all(
      manifest.files.map(async ([name]) => (await lstat(path.join(folder, name))).size),
    );
    return manifest.files.every(([, bytes], i) => sizes[i] === bytes);
  } catch {
    return false;
  }
}

/** Makes sure that the entry outlives a loss of power; until then it is good for as long as the system runs. */
export async function syncEntry(entry: string): Promise<void> {
  const manifest = await readManifest(entry);
  for (const [name] of manifest?.files ?? []) {
    const file = await open(path.join(filesFolder(entry), name));
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
  const draft = path.join(entry, `${syncedName}.draft`);
  await writeFile(draft, "", { mode: ownerOnly });
  await rename(draft, path.join(entry, syncedName));
}

/** Counts as a use: what was used longest ago goes first. */
export async function touchEntry(entry: string): Promise<void> {
  const now = new Date();
  // A cache that came with a read-only image works all the same.
  await utimes(entry, now, now).catch(() => {});
}

/** Removes an entry, in one step for those who look, however long its files take. */
export async function discardEntry(entry: string, aside: string): Promise<void> {
  await unlessGone(rename(entry, aside));
  await rm(aside, { recursive: true, force: true });
}

const boot = bootOfSystem();

function bootOfSystem(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // No two processes agree: entries count from the moment they are synced.
    return String(process.pid);
  }
}

function isManifest(value: unknown): value is CacheManifest {
  return (
    typeof value === "object" &&
    value !== null &&
    "files" in value &&
    Array.isArray(value.files) &&
    "boot" in value
  );
}
