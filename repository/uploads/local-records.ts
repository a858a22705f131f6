import { randomUUID } from "node:crypto";
import { link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { unlessGone } from "../file-stamps.ts";
import { isUploadId, parseRecord, type UploadRecord } from "./upload-record.ts";
import type { StoredUpload } from "./upload-store.ts";

const recordPattern = /^upload\.(?<revision>\d{1,9})\.json$/u;

/**
 * The records of uploads in a folder, one folder for each. A record is never written over: its next revision is another
 * file, which only one of those who want to write it can make.
 */
export class LocalRecords {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Holds all that there is of one upload. */
  folder(id: string): string {
    return join(this.#root, id);
  }

  async all(): Promise<readonly StoredUpload[]> {
    const ids = ((await unlessGone(readdir(this.#root))) ?? []).filter(isUploadId);
    const found = await Promise.all(ids.map((id) => this.find(id)));
    return found.filter((one): one is StoredUpload => one !== undefined);
  }

  async find(id: string): Promise<StoredUpload | undefined> {
    const names = (await unlessGone(readdir(this.folder(id)))) ?? [];
    const revisions = names.flatMap((name) => recordPattern.exec(name)?.groups?.["revision"] ?? []);
    const tag = String(Math.max(...revisions.map(Number)));
    const text = await unlessGone(readFile(this.#file(id, tag), "utf8"));
    return text === undefined ? undefined : { record: parseRecord(text), tag };
  }

  /** False where there is one of that id. */
  async create(record: UploadRecord): Promise<boolean> {
    const draft = this.#aside();
    await mkdir(draft, { recursive: true });
    await writeFile(join(draft, "upload.1.json"), JSON.stringify(record));
    try {
      // Appears whole, or not where there is one already.
      await rename(draft, this.folder(record.id));
      return true;
    } catch (error) {
      if (isTaken(error)) return false;
      throw error;
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  async update(before: StoredUpload, record: UploadRecord): Promise<StoredUpload | undefined> {
    const tag = String(Number(before.tag) + 1);
    const draft = this.#aside();
    try {
      await writeFile(draft, JSON.stringify(record));
      await link(draft, this.#file(record.id, tag));
    } catch (error) {
      if (isTaken(error) || isGone(error)) return undefined;
      throw error;
    } finally {
      await rm(draft, { force: true });
    }
    await rm(this.#file(record.id, before.tag), { force: true });
    return { record, tag };
  }

  /** At once for those who look, whatever it holds. */
  async remove(id: string): Promise<void> {
    const aside = this.#aside();
    await unlessGone(rename(this.folder(id), aside));
    await rm(aside, { recursive: true, force: true });
  }

  /** Removes what was left by processes that died. */
  async tidy(before: number): Promise<void> {
    for (const name of (await unlessGone(readdir(this.#root))) ?? []) {
      if (isUploadId(name)) continue;
      const found = await unlessGone(stat(join(this.#root, name)));
      if (found && found.mtimeMs < before)
        await rm(join(this.#root, name), { recursive: true, force: true });
    }
  }

  #file(id: string, revision: string): string {
    return join(this.folder(id), `upload.${revision}.json`);
  }

  #aside(): string {
    return join(this.#root, `aside-${randomUUID()}`);
  }
}

/** True when something is in the place already. */
export function isTaken(error: unknown): boolean {
  return ["EEXIST", "ENOTEMPTY"].includes(codeOf(error));
}

function isGone(error: unknown): boolean {
  return codeOf(error) === "ENOENT";
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
