import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import { partCount, type UploadFile } from "../../protocol/upload.ts";
import type { UploadRecord } from "./upload-record.ts";

/** Throws INVALID_ARG unless all parts are there. */
export function missingParts(
  { files, partBytes }: UploadRecord,
  there: readonly (readonly number[])[],
): void {
  const wanted = files.reduce((sum, file) => sum + partCount(file, partBytes), 0);
  const found = there.reduce((sum, parts) => sum + parts.length, 0);
  if (found >= wanted) return;
  const first = files.find((file, at) => (there[at] ?? []).length < partCount(file, partBytes));
  throw invalidArgument(
    `upload: given ${found} of ${wanted} parts, expected all of them; the first that is missing is of ${JSON.stringify(first?.name)}`,
  );
}

/** The refusal of a file that is another one than was announced. */
export function otherContent({ name, sha256 }: UploadFile, given: string): InferenceError {
  return invalidArgument(
    `file ${JSON.stringify(name)}: its content has sha256 ${given}, expected ${sha256}; send it again`,
  );
}

/** How a version is refused that somebody else has put there. */
export function versionTaken({
  model,
  version,
}: Pick<UploadRecord, "model" | "version">): InferenceError {
  return new InferenceError(
    StatusCode.AlreadyExists,
    `model '${model}', version ${version}: it is in the repository already, expected another version; versions are never replaced`,
  );
}
