import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { pipeline } from "node:stream/promises";

/**
 * Names a model by its content: the file's SHA-256, and the names and sizes of its neighbours, which may hold its
 * weights; those say nothing about the graph, so they are not read.
 */
export async function modelDigest(file: string): Promise<string> {
  const hash = createHash("sha256");
  const folder = path.dirname(file);
  for (const name of (await readdir(folder)).toSorted()) {
    const { size } = await stat(path.join(folder, name));
    hash.update(`${name}\0${size}\0`);
  }
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  return hash.digest("hex");
}
