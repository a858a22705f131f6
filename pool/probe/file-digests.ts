import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { open, readFile, realpath, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { CacheFolder } from "./cache-folder.ts";

/** Smaller files are read again: that is as quick as looking up what they were. */
const remembered = 1024 * 1024;
const maxMemoryBytes = 16 * 1024 * 1024;
/** Two changes so close to each other may bear the same time, on file systems with coarse clocks. */
const clockNanoseconds = 2_000_000_000n;
/** Hashing one chunk blocks the event loop for less than a millisecond. */
const chunkBytes = 256 * 1024;
const sha256 = /^[0-9a-f]{64}$/;

/** Files' SHA-256; a large file that has not changed since is not read again. */
export class FileDigests {
  readonly #memory: CacheFolder;

  constructor(cacheDirectory: string) {
    this.#memory = new CacheFolder(path.join(cacheDirectory, "digests-1"), maxMemoryBytes);
  }

  async of(file: string): Promise<string> {
    const status = await stat(file, { bigint: true });
    if (status.size < remembered) return contentDigest(file);
    const name = textDigest(await realpath(file));
    const known = await this.#recall(name, status);
    if (known !== undefined) return known;
    const began = BigInt(Date.now()) * 1_000_000n;
    const digest = await contentDigest(file);
    const settled = status.ctimeNs + clockNanoseconds < began;
    if (settled && stampOf(await stat(file, { bigint: true })) === stampOf(status)) {
      const line = `${stampOf(status)} ${digest}`;
      await this.#memory.put(name, (to) => writeFile(to, line, { mode: 0o600 }));
    }
    return digest;
  }

  async #recall(name: string, status: BigIntStats): Promise<string | undefined> {
    try {
      const entry = await this.#memory.find(name);
      if (entry === undefined) return undefined;
      const [stamp, digest = ""] = (await readFile(entry, "utf8")).split(" ");
      return stamp === stampOf(status) && sha256.test(digest) ? digest : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Changes whenever the file does: the time of its last change of any kind cannot be set back as that of its content can. */
function stampOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

/** Reads into one buffer again and again: as a stream, a large file would pass through as much fresh memory. */
async function contentDigest(file: string): Promise<string> {
  const hash = createHash("sha256");
  const handle = await open(file);
  try {
    const chunk = Buffer.allocUnsafeSlow(chunkBytes);
    for (;;) {
      const { bytesRead } = await handle.read(chunk);
      if (bytesRead === 0) return hash.digest("hex");
      hash.update(chunk.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}

/** SHA-256 of a text. */
export function textDigest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
