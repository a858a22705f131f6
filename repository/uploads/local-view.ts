import { mkdir, rm, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileStamps } from "../file-stamps.ts";
import { isVersionName } from "../file-versions.ts";
import type { UploadFile } from "../../protocol/upload.ts";

export interface ViewParts {
  /** The folder of the model as it is, which need not exist. */
  readonly model: string;
  /** The uploaded files as they will lie in it. */
  readonly staged: string;
  readonly version: number;
  /** Those of the upload that all versions share. */
  readonly shared: readonly UploadFile[];
}

/** Makes a folder that shows a model as it will be, by links to what is there and to what was uploaded. */
export async function makeView(view: string, parts: ViewParts): Promise<void> {
  const { model, staged, version, shared } = parts;
  await rm(view, { recursive: true, force: true });
  await mkdir(view, { recursive: true });
  const place = async (path: string, target: string): Promise<void> => {
    await mkdir(dirname(join(view, path)), { recursive: true });
    await symlink(relative(dirname(join(view, path)), target), join(view, path));
  };
  const uploaded = new Set(shared.map(({ name }) => name));
  for (const { path, isDirectory } of await fileStamps(model)) {
    const [first = "", ...below] = path.split("/");
    const ofVersion = isVersionName(first);
    // A version is one link, and what versions share a link for each file.
    const whole = ofVersion ? below.length === 0 : !isDirectory;
    if (whole && !uploaded.has(path)) await place(path, join(model, path));
  }
  for (const name of uploaded) await place(name, join(staged, name));
  await place(String(version), join(staged, String(version)));
}
