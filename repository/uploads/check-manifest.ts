import { type InferenceError, invalidArgument } from "../../protocol/error.ts";
import type { UploadFile } from "../../protocol/upload.ts";
import { isPathSegment } from "../model-name.ts";

/** What one upload may have. */
export interface UploadBounds {
  /** `--upload-max-mb` */
  readonly maxBytes: number;
}

const maxFiles = 2000;
const maxDepth = 8;
const maxNameBytes = 512;
/** What may be a file's name on every system and a key's in every bucket. */
const segmentPattern = /^\w[\w .,+=@()~-]*$/u;
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/iu;

/** Throws INVALID_ARG for files that could not lie in a model's folder, or are too many or too large. */
export function checkManifest(files: readonly UploadFile[], { maxBytes }: UploadBounds): void {
  if (files.length === 0 || files.length > maxFiles)
    throw invalidArgument(`files: given ${files.length}, expected 1 to ${maxFiles}`);
  for (const file of files) checkFile(file);
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > maxBytes)
    throw invalidArgument(
      `files: given ${total} bytes, expected at most ${maxBytes}; the server's --upload-max-mb says so`,
    );
  checkTogether(files);
}

function checkFile({ name, bytes, sha256, shared }: UploadFile): void {
  if (!Number.isSafeInteger(bytes) || bytes < 0)
    throw invalidFile(name, `given ${bytes} bytes, expected a whole number`);
  if (!/^[0-9a-f]{64}$/u.test(sha256))
    throw invalidFile(name, "sha256: expected 64 lower-case hexadecimal digits");
  const segments = name.split("/");
  if (Buffer.byteLength(name) > maxNameBytes || segments.length > maxDepth)
    throw invalidFile(name, `expected at most ${maxNameBytes} bytes and ${maxDepth} levels`);
  const wrong = segments.find((segment) => !isPlain(segment));
  if (wrong !== undefined)
    throw invalidFile(
      name,
      "expected a relative path of names that begin with a letter, a digit or '_' and are no device's",
    );
  if (shared && /^\d+$/u.test(segments[0] ?? ""))
    throw invalidFile(name, "expected no folder of a version among the files that versions share");
}

function isPlain(segment: string): boolean {
  if (!isPathSegment(segment) || !segmentPattern.test(segment)) return false;
  return !device.test(segment) && !/[ .]$/u.test(segment);
}

/** Some systems tell no case, and no file can be a folder, too. */
function checkTogether(files: readonly UploadFile[]): void {
  const seen = new Map<string, string>();
  const folders = new Set<string>();
  for (const { name, shared } of files) {
    const place = `${shared ? "shared" : "version"}/${name.toLowerCase()}`;
    const other = seen.get(place);
    if (other !== undefined) throw invalidFile(name, `given '${other}', too, expected one of them`);
    seen.set(place, name);
    for (let end = place.lastIndexOf("/"); end > 0; end = place.lastIndexOf("/", end - 1))
      folders.add(place.slice(0, end));
  }
  for (const [place, name] of seen)
    if (folders.has(place)) throw invalidFile(name, "expected a file or a folder, and not both");
}

function invalidFile(name: string, text: string): InferenceError {
  const shown = JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
  return invalidArgument(`file ${shown}: ${text}`);
}
