import { invalidArgument } from "../protocol/error.ts";
import { type FileStamp, fingerprintOf } from "./file-stamps.ts";
import { isPathSegment } from "./model-name.ts";
import type { StoredVersion } from "./model-store.ts";

const maxConfigBytes = 1024 * 1024;

/** The versions that the files of a model make up, ascending: each folder with a number for a name is one. */
export function storedVersions(stamps: readonly FileStamp[]): readonly StoredVersion[] {
  const folders = stamps.filter(({ path, isDirectory }) => isDirectory && isVersionName(path));
  const versions = new Set(folders.map(({ path }) => path));
  const shared = "";
  const groups = Map.groupBy(stamps, ({ path }) => {
    const first = firstSegment(path);
    return versions.has(first) ? first : shared;
  });
  return folders
    .map(({ path: folder }) => {
      const own = groups.get(folder) ?? [];
      const below = own.map(({ path }) => path.slice(folder.length + 1));
      return {
        version: Number(folder),
        files: below.filter((path) => path !== "" && !path.includes("/")),
        fingerprint: fingerprintOf([...(groups.get(shared) ?? []), ...own]),
      };
    })
    .toSorted((a, b) => a.version - b.version);
}

/** True for a file below a model's folder that is this version's own, or no version's. */
export function isOfVersion(path: string, version: number): boolean {
  const first = firstSegment(path);
  return first === String(version) || !isVersionName(first);
}

/** Where a config may lie below its model's folder, best first; throws for a name that is no file's. */
export function configFileNames(configName = ""): readonly string[] {
  if (configName === "") return ["config.pbtxt"];
  if (!isPathSegment(configName))
    throw invalidArgument(
      `model config name: given '${configName}', expected the name of a file without its '.pbtxt'`,
    );
  return [`configs/${configName}.pbtxt`, "config.pbtxt"];
}

/** Throws for a config file that is too long to be one. */
export function checkConfigBytes(fileName: string, bytes: number): void {
  if (bytes > maxConfigBytes)
    throw invalidArgument(`${fileName}: given ${bytes} bytes, expected at most ${maxConfigBytes}`);
}

/** True for the name of a folder that is a version. */
export function isVersionName(text: string): boolean {
  return /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text));
}

function firstSegment(path: string): string {
  const end = path.indexOf("/");
  return end < 0 ? path : path.slice(0, end);
}
