import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileStamps } from "./file-stamps.ts";
import { isOfVersion } from "./file-versions.ts";

/** One text for what is in all files that a version is made of: its own, and those that all versions share. */
export async function contentDigest(modelDirectory: string, version: number): Promise<string> {
  const all = createHash("sha256");
  for (const { path, isDirectory } of await fileStamps(modelDirectory)) {
    if (isDirectory || !isOfVersion(path, version)) continue;
    const contents = createHash("sha256");
    await pipeline(createReadStream(join(modelDirectory, path)), contents);
    all.update(`${path}\0${contents.digest("base64url")}\n`);
  }
  return all.digest("base64url");
}
