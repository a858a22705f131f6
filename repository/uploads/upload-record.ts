import { createHash } from "node:crypto";
import { invalidArgument } from "../../protocol/error.ts";
import { isJsonObject } from "../../protocol/json-access.ts";
import type { UploadFile } from "../../protocol/upload.ts";

/** What lies beside the files of an upload, in the repository itself, so that any server can go on with it. */
export interface UploadRecord {
  readonly id: string;
  readonly model: string;
  readonly version: number;
  readonly files: readonly UploadFile[];
  readonly partBytes: number;
  /** Who began it. */
  readonly by: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Publishing: some of it may be visible, so that there is no way back. */
  readonly state: "uploading" | "opening" | "publishing" | "done";
  /** When the server that opens or publishes it last said that it lives. */
  readonly touchedAt: number;
  /** S3's names for uploads of files in parts, by the number of the file. */
  readonly multipart?: Readonly<Record<number, string>>;
}

/** Equal for uploads of one version, so that there is never more than one. */
export function uploadId(model: string, version: number): string {
  return createHash("sha256").update(`${model}\0${version}`).digest("hex").slice(0, 32);
}

/** True for a text that may be an id, and a segment of a path. */
export function isUploadId(text: string): boolean {
  return /^[0-9a-f]{32}$/u.test(text);
}

/** Where a file lies below its model's folder. */
export function pathInModel({ version }: Pick<UploadRecord, "version">, file: UploadFile): string {
  return file.shared ? file.name : `${version}/${file.name}`;
}

/** The file of that number; throws INVALID_ARG when there is none. */
export function fileOf(record: UploadRecord, number: number): UploadFile {
  const file = record.files[number];
  if (file) return file;
  throw invalidArgument(
    `file: given ${number}, expected a whole number from 0 to ${record.files.length - 1}`,
  );
}

/** Reads what a server wrote, perhaps one of another release. */
export function parseRecord(text: string): UploadRecord {
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value) || !isUploadId(String(value["id"])) || !Array.isArray(value["files"]))
    throw new Error("not the record of an upload");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this program, into a folder that is its own
  return value as unknown as UploadRecord;
}
