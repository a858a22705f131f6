import { setTimeout as sleep } from "node:timers/promises";
import { changeMark, hiddenMark, newModels } from "../change-marks.ts";
import type { S3Object } from "../s3-bucket.ts";
import type { S3Writer } from "../s3-writer.ts";
import { Slots } from "../slots.ts";
import { together } from "../together.ts";
import type { UploadRecord } from "./upload-record.ts";

/** An uploaded object, and where it belongs below its model. */
export interface StagedObject {
  readonly path: string;
  readonly object: S3Object;
}

export interface PublishPlace {
  readonly writer: S3Writer;
  /** What the keys of all models begin with. */
  readonly prefix: string;
  /** What the keys of all uploads begin with. */
  readonly staging: string;
  /** A list that began before a mark was there has ended after so long. */
  readonly settleMilliseconds: number;
}

export interface PublishedObjects {
  /** There is nothing of the model yet. */
  readonly isNew: boolean;
  readonly ofVersion: readonly StagedObject[];
  /** Those of all versions that become other ones. */
  readonly shared: readonly StagedObject[];
}

const copiesAtOnce = 8;

/**
 * Copies uploaded objects to where models are read. S3 has no rename: marks hide the version until all of it is there, make
 * readers wait while files are exchanged that all versions share, and keep the name of a new model out of every list.
 */
export async function publishObjects(
  record: UploadRecord,
  { isNew, ofVersion, shared }: PublishedObjects,
  place: PublishPlace,
): Promise<void> {
  const { writer, prefix, settleMilliseconds } = place;
  const folder = `${prefix}${record.model}/`;
  const marks = publishMarks(record, place);
  const [hidden, changing, newModel] = marks;
  if (isNew) await writer.put(newModel, record.id);
  await writer.put(hidden, record.id);
  await sleep(settleMilliseconds);
  if (ofVersion.length === 0) await writer.put(`${folder}${record.version}/`, "");
  await copyAll(writer, folder, ofVersion);
  if (shared.length > 0) {
    await writer.put(changing, record.id);
    await sleep(settleMilliseconds);
    await copyAll(writer, folder, shared);
  }
  await writer.remove(marks);
}

/** The keys of all marks, in the order in which they go. */
export function publishMarks(
  { model, version, id }: UploadRecord,
  { prefix, staging }: PublishPlace,
): readonly [hidden: string, changing: string, newModel: string] {
  const folder = `${prefix}${model}/`;
  return [folder + hiddenMark(version), folder + changeMark(id), `${staging}${newModels}/${model}`];
}

async function copyAll(
  writer: S3Writer,
  folder: string,
  objects: readonly StagedObject[],
): Promise<void> {
  const slots = new Slots(copiesAtOnce);
  await together(
    new AbortController().signal,
    objects.map(
      ({ path, object }) =>
        () =>
          slots.run(() => writer.copy(object, folder + path)),
    ),
  );
}
