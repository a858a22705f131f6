import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { FileStamp } from "./file-stamps.ts";

/** Beside the models; a name that begins so is no model's. */
export const stagingFolder = ".tidepool-uploads";

/** Below it, in S3: the names of models that are still coming, of which no list tells. */
export const newModels = "new";

const changing = ".tidepool-change-";
const hiding = ".tidepool-hidden-";

/** Lies in a model's folder while several of its files are exchanged: who reads the model then waits. */
export function changeMark(uploadId: string): string {
  return `${changing}${uploadId}`;
}

/** Lies in a model's folder while a version's files come one by one: who reads the model does not see them. */
export function hiddenMark(version: number): string {
  return `${hiding}${version}`;
}

/** True while the model is neither what it was nor what it will be. */
export function isChanging(stamps: readonly FileStamp[]): boolean {
  return stamps.some(({ path }) => path.startsWith(changing));
}

/** The versions that are still coming. */
export function hiddenVersions(stamps: readonly FileStamp[]): ReadonlySet<string> {
  const marks = stamps.filter(({ path }) => path.startsWith(hiding));
  return new Set(marks.map(({ path }) => path.slice(hiding.length)));
}

/** True for what lies in a model's folder and belongs to no model. */
export function isMark(path: string): boolean {
  return path.startsWith(changing) || path.startsWith(hiding);
}

/** How long one who reads waits for whoever changes the model, which takes moments. */
export const changePatience = { pauseMilliseconds: 20, tries: 500 };

/** Why a model cannot be read that was being changed all the time. */
export function stillChanging(name: string): InferenceError {
  return new InferenceError(
    StatusCode.Unavailable,
    `model '${name}': its files are being exchanged`,
    { retryAfterSeconds: 1 },
  );
}
