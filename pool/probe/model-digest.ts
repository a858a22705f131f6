import { stat } from "node:fs/promises";
import path from "node:path";
import { fileStamps } from "../../repository/file-stamps.ts";
import { type FileDigests, textDigest } from "./file-digests.ts";

/** No more than an ONNX file can hold by itself; weights beside it may be more. */
const maxWeightBytes = 2 ** 31;

export interface ModelDigest {
  readonly text: string;
  /** Size of all that may belong to the model. */
  readonly bytes: number;
  /** False when the weights beside the file are too large to be read only for this; then they go by name and size. */
  readonly withWeights: boolean;
}

/** Names a model by its content: its file, and all files beside and below it, which may hold its weights. */
export async function modelDigest(file: string, digests: FileDigests): Promise<ModelDigest> {
  const folder = path.dirname(file);
  const own = path.basename(file);
  const names = (await fileStamps(folder))
    .filter(({ isDirectory }) => !isDirectory)
    .map((found) => found.path);
  const sizes = await Promise.all(
    names.map(async (name) => (await stat(path.join(folder, name))).size),
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const withWeights = bytes <= maxWeightBytes;
  const lines: string[] = [];
  for (const [i, name] of names.entries()) {
    const read = withWeights || name === own;
    lines.push(`${name}\0${read ? await digests.of(path.join(folder, name)) : sizes[i]}\n`);
  }
  return { text: textDigest(lines.join("")), bytes, withWeights };
}
