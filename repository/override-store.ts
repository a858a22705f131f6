import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type InferenceError, invalidArgument } from "../protocol/error.ts";
import { LocalStore } from "./local-store.ts";
import { checkModelName, isPathSegment } from "./model-name.ts";
import type { LocalVersion, ModelStore, StoredModel } from "./model-store.ts";

const maxFiles = 1024;
const maxPathDepth = 15;
const maxBytes = 2 * 1024 ** 3;

/**
 * The files that one load request brought along, in a temporary folder of their own.
 * The folder goes when the load is over and the last version that was fetched from it is released.
 */
export class OverrideStore implements ModelStore {
  readonly #folder: string;
  readonly #store: LocalStore;
  #users = 1;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#store = new LocalStore(folder);
  }

  /** Throws INVALID_ARG for paths that leave the model's folder, and for too many or too large files. */
  static async write(name: string, files: ReadonlyMap<string, Uint8Array>): Promise<OverrideStore> {
    checkModelName(name);
    checkFiles(files);
    const folder = await mkdtemp(join(tmpdir(), "tidepool-override-"));
    const store = new OverrideStore(folder);
    try {
      for (const [path, bytes] of files) await writeInside(join(folder, name), path, bytes);
    } catch (error) {
      await store.release();
      throw error;
    }
    return store;
  }

  list(): Promise<readonly string[]> {
    return this.#store.list();
  }

  read(name: string): Promise<StoredModel | undefined> {
    return this.#store.read(name);
  }

  async fetch(model: StoredModel, version: number): Promise<LocalVersion> {
    const local = await this.#store.fetch(model, version);
    this.#users++;
    return { ...local, release: () => this.release() };
  }

  /** The load that brought the files is over. */
  async release(): Promise<void> {
    if (--this.#users === 0) await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Equal for equal files. */
export function contentFingerprint(files: ReadonlyMap<string, Uint8Array>): string {
  const hash = createHash("sha256");
  for (const [path, bytes] of [...files].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path}\0${bytes.byteLength}\n`).update(bytes);
  }
  return hash.digest("base64url");
}

function checkFiles(files: ReadonlyMap<string, Uint8Array>): void {
  let total = 0;
  for (const [path, bytes] of files) {
    const segments = path.split("/");
    if (!segments.every(isPathSegment) || segments.length > maxPathDepth)
      throw invalid(path, "expected a relative path below the model's folder");
    total += bytes.byteLength;
  }
  if (files.size > maxFiles) throw invalid("", `given ${files.size}, expected at most ${maxFiles}`);
  if (total > maxBytes) throw invalid("", `given ${total} bytes, expected at most ${maxBytes}`);
}

async function writeInside(folder: string, path: string, bytes: Uint8Array): Promise<void> {
  const target = join(folder, path);
  try {
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, bytes, { flag: "wx", mode: 0o600 });
  } catch (cause) {
    // "1" and "1/model.onnx" cannot both be files.
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    if (!["EEXIST", "ENOTDIR", "EISDIR"].includes(code)) throw cause;
    throw invalid(path, "expected no other file in its place");
  }
}

function invalid(path: string, text: string): InferenceError {
  const shown = path.length > 64 ? `${path.slice(0, 64)}…` : path;
  return invalidArgument(
    path === "" ? `model file overrides: ${text}` : `load parameter 'file:${shown}': ${text}`,
  );
}
