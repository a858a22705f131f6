import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import { type NewUpload, UploadConflict, type UploadFile } from "../../protocol/upload.ts";
import { versionTaken } from "../../repository/uploads/refusals.ts";
import { uploadId, type UploadRecord } from "../../repository/uploads/upload-record.ts";
import type { UploadStore } from "../../repository/uploads/upload-store.ts";
import { isHeld } from "./upload-commit.ts";

export interface BeginOptions {
  /** An upload that is older is forgotten. */
  readonly keptMilliseconds: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

const maxUnfinished = 64;
/** For those who begin at the same moment and want the next version. */
const tries = 20;

/** Begins an upload, or finds the one of the same files; throws ALREADY_EXISTS when the version is taken. */
export async function beginUpload(
  place: UploadStore,
  model: string,
  upload: NewUpload,
  options: BeginOptions,
): Promise<UploadRecord> {
  const { version } = upload;
  if (version !== undefined && !(Number.isSafeInteger(version) && version >= 1))
    throw invalidArgument(`version: given ${version}, expected a whole number from 1`);
  for (let tried = 0; tried < tries; tried++) {
    const records = await unexpired(place, options);
    const stored = (await place.store.read(model))?.versions ?? [];
    const known = {
      stored: stored.map((one) => one.version),
      ofModel: records.filter((record) => record.model === model),
    };
    const same = sameUpload(upload, known);
    if (same) return same;
    const wanted = freeVersion(model, upload, known);
    if (records.filter(({ state }) => state !== "done").length >= maxUnfinished) throw tooMany();
    const done = known.ofModel.find((record) => record.version === wanted);
    // What was uploaded has been taken out of the repository since.
    if (done) await place.remove(done, "all");
    const record = newRecord(place, model, wanted, { ...upload, now: options.now() });
    if (await place.create(record)) return record;
  }
  throw new InferenceError(StatusCode.Unavailable, "upload: too many begin now; try again");
}

/** What there is of a model. */
interface KnownVersions {
  readonly stored: readonly number[];
  readonly ofModel: readonly UploadRecord[];
}

function sameUpload(
  { version, files }: NewUpload,
  { stored, ofModel }: KnownVersions,
): UploadRecord | undefined {
  return ofModel.find(
    (record) =>
      (version ?? record.version) === record.version &&
      isSame(record.files, files) &&
      (record.state !== "done" || stored.includes(record.version)),
  );
}

/** The version that is wanted, or the next one. */
function freeVersion(
  model: string,
  { version: given }: NewUpload,
  { stored, ofModel }: KnownVersions,
): number {
  const unfinished = ofModel.filter(({ state }) => state !== "done");
  const taken = [...stored, ...unfinished.map(({ version }) => version)];
  const version = given ?? Math.max(0, ...taken) + 1;
  if (stored.includes(version)) throw versionTaken({ model, version });
  const other = unfinished.find((record) => record.version === version);
  if (other) throw underWay(other);
  return version;
}

function newRecord(
  place: UploadStore,
  model: string,
  version: number,
  { files, principal, now }: NewUpload & { readonly now: number },
): UploadRecord {
  return {
    id: uploadId(model, version),
    model,
    version,
    files,
    partBytes: place.partBytes(Math.max(...files.map(({ bytes }) => bytes))),
    by: principal.name,
    createdAt: now,
    state: "uploading",
    touchedAt: 0,
  };
}

async function unexpired(
  place: UploadStore,
  { now, keptMilliseconds }: BeginOptions,
): Promise<readonly UploadRecord[]> {
  const left: UploadRecord[] = [];
  for (const { record } of await place.records()) {
    const old = now() - record.createdAt > keptMilliseconds;
    if (old && !isHeld(record, now()) && record.state !== "publishing")
      await place.remove(record, "all");
    else left.push(record);
  }
  return left;
}

function isSame(one: readonly UploadFile[], other: readonly UploadFile[]): boolean {
  return linesOf(one) === linesOf(other);
}

function linesOf(files: readonly UploadFile[]): string {
  return files
    .map(({ name, bytes, sha256, shared }) => JSON.stringify([name, bytes, sha256, shared]))
    .toSorted()
    .join("\n");
}

function underWay({ id, model, version, by, createdAt }: UploadRecord): InferenceError {
  const began = new Date(createdAt).toISOString();
  return new UploadConflict(
    `model '${model}', version ${version}: upload ${id} of other files is under way, begun by ${by} at ${began}; expected another version, or the end of that upload`,
    id,
  );
}

function tooMany(): InferenceError {
  const text = `upload: given one more, expected at most ${maxUnfinished} that are not finished`;
  return new InferenceError(StatusCode.Unavailable, text, { retryAfterSeconds: 60 });
}
