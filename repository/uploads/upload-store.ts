import type { PartBody, PartPlace, PartToSign, SignedPart } from "../../protocol/upload.ts";
import type { ModelStore, StoredModel } from "../model-store.ts";
import type { UploadRecord } from "./upload-record.ts";

/** A record as it was read, with what tells that nobody has changed it since. */
export interface StoredUpload {
  readonly record: UploadRecord;
  readonly tag: string;
}

/** A model as it will be once an upload is part of it. */
export interface StagedModel {
  readonly model: StoredModel;
  /** The store that fetches it. */
  readonly store: ModelStore;
  /** Files that all versions share become other ones, so that this is about them, too. */
  readonly changesShared: boolean;
}

/**
 * Where a place of models keeps uploads until they are part of it: on the same disk or in the same bucket, under a name
 * that no list of models has. Ids are checked ones; errors are InferenceErrors that tell no paths.
 */
export interface UploadStore {
  /** The place itself. */
  readonly store: ModelStore;
  /** Writes parts itself, or signs URLs for them. */
  readonly transfer:
    | {
        readonly kind: "direct";
        write(record: UploadRecord, place: PartPlace, body: PartBody): Promise<void>;
      }
    | {
        readonly kind: "signed";
        sign(record: UploadRecord, parts: readonly PartToSign[]): Promise<readonly SignedPart[]>;
      };
  /** The size of the parts of files of which the largest has so many bytes. */
  partBytes(largestBytes: number): number;
  records(): Promise<readonly StoredUpload[]>;
  find(id: string): Promise<StoredUpload | undefined>;
  /** False when there is an upload of that id. Rejects with UNAVAILABLE when there is no room for it. */
  create(record: UploadRecord): Promise<boolean>;
  /** Undefined when somebody else has changed it meanwhile. */
  update(before: StoredUpload, next: UploadRecord): Promise<StoredUpload | undefined>;
  /** For each file the numbers of the parts that are there, ascending. */
  parts(record: UploadRecord): Promise<readonly (readonly number[])[]>;
  /** Nothing is missing: from now on it can be opened. Throws INVALID_ARG for what is not as announced. */
  seal(record: UploadRecord): Promise<void>;
  /** A sealed upload in its model's place. */
  staged(record: UploadRecord): Promise<StagedModel>;
  /**
   * Makes it visible, at once and whole; ALREADY_EXISTS when somebody else has put the version there.
   *
   * @param again where an earlier call was interrupted, this one goes on
   */
  publish(record: UploadRecord, again: boolean): Promise<void>;
  /** The files, or all that is left of it. */
  remove(record: UploadRecord, what: "files" | "all"): Promise<void>;
  /** Removes what no record leads to and is older than that; milliseconds since the epoch. */
  tidy(before: number): Promise<void>;
}
