import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { isJsonObject } from "../protocol/json-access.ts";
import { type KeyRecord, readKeyRecord } from "./key-record.ts";
import { type KeyStore, mostKeys } from "./key-store.ts";

const mostBytes = 64 * 1024 * 1024;
const patienceMilliseconds = 5000;

/** Keeps keys in a file that only its owner may read. Servers look at it, `tidepool keys` changes it. */
export function fileKeyStore(file: string): KeyStore {
  return {
    name: file,
    async version() {
      const { ino, size, mtimeNs } = await stat(file, { bigint: true });
      return `${ino} ${size} ${mtimeNs}`;
    },
    all: () => readKeys(file),
    replace: (before, after) => locked(file, () => replace(file, before, after)),
  };
}

async function replace(
  file: string,
  before: KeyRecord | undefined,
  after: KeyRecord | undefined,
): Promise<boolean> {
  const keys = await readKeys(file).catch((error: unknown) => {
    if (isMissing(error) && before === undefined) return [];
    throw error;
  });
  const id = before?.id ?? after?.id;
  const at = keys.findIndex((key) => key.id === id);
  if (JSON.stringify(keys[at]) !== JSON.stringify(before)) return false;
  const others = keys.filter((key) => key.id !== id);
  const next = after ? [...others, after] : others;
  if (next.length > mostKeys) throw unusable(file, `given ${mostKeys} already, expected fewer`);
  await write(file, next);
  return true;
}

async function readKeys(file: string): Promise<readonly KeyRecord[]> {
  const { size } = await stat(file);
  if (size > mostBytes) throw unusable(file, `given ${size} bytes, expected ${mostBytes} at most`);
  const json = parsed(file, await readFile(file, "utf8"));
  const keys = isJsonObject(json) ? json["keys"] : undefined;
  if (!Array.isArray(keys) || keys.length > mostKeys) {
    throw unusable(file, `expected an object with a list "keys" of at most ${mostKeys}`);
  }
  return keys.map(readKeyRecord);
}

function parsed(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unusable(file, "given no JSON", cause);
  }
}

/** Whoever reads meanwhile reads the old file or the new one, and so does whoever comes after a crash. */
async function write(file: string, keys: readonly KeyRecord[]): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(`${JSON.stringify({ keys }, undefined, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
}

/** Two that change the file at once would undo each other. */
async function locked<Result>(file: string, change: () => Promise<Result>): Promise<Result> {
  const lock = `${file}.lock`;
  const until = performance.now() + patienceMilliseconds;
  for (;;) {
    try {
      await (await open(lock, "wx", 0o600)).close();
      break;
    } catch (cause) {
      if (!isTaken(cause)) throw cause;
      if (performance.now() > until) {
        throw unusable(file, `${lock} says that somebody changes it; remove that if nobody does`);
      }
      await sleep(20);
    }
  }
  try {
    return await change();
  } finally {
    await rm(lock, { force: true });
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}

function unusable(file: string, text: string, cause?: unknown): InferenceError {
  return new InferenceError(StatusCode.Unavailable, `keys in ${file}: ${text}`, { cause });
}
