import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { UploadFile } from "../../protocol/upload.ts";
import { changeMark } from "../change-marks.ts";
import { unlessGone } from "../file-stamps.ts";
import { isTaken } from "./local-records.ts";
import { versionTaken } from "./refusals.ts";
import type { UploadRecord } from "./upload-record.ts";

export interface PublishParts {
  /** The model's folder, which need not exist. */
  readonly model: string;
  /** The uploaded files as they will lie in it. */
  readonly staged: string;
  /** Those that all versions share and that are not in the model's folder yet, or as other ones. */
  readonly shared: readonly UploadFile[];
}

/**
 * Moves uploaded files to where models are read: by one rename where that is enough, otherwise under a mark that makes
 * readers wait until all of them are there. Where an earlier call was interrupted it goes on.
 */
export async function publishFolder(record: UploadRecord, parts: PublishParts): Promise<void> {
  const { model, staged, shared } = parts;
  const version = String(record.version);
  if (!(await isFolder(model)) && (await moved(staged, model))) return;
  const [from, to] = [join(staged, version), join(model, version)];
  const comes = await isFolder(from);
  if (comes && (await isFolder(to))) throw versionTaken(record);
  const mark = join(model, changeMark(record.id));
  if (shared.length > 0) await writeFile(mark, "");
  if (comes && !(await moved(from, to))) {
    await rm(mark, { force: true });
    throw versionTaken(record);
  }
  // What fails from here on leaves the mark, because nobody may see half of it.
  for (const { name } of shared) {
    await mkdir(dirname(join(model, name)), { recursive: true });
    await unlessGone(rename(join(staged, name), join(model, name)));
  }
  await rm(mark, { force: true });
}

/** False where something is in its place. */
async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (isTaken(error)) return false;
    throw error;
  }
}

async function isFolder(folder: string): Promise<boolean> {
  return (await unlessGone(stat(folder)))?.isDirectory() ?? false;
}
