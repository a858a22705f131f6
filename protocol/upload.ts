import type { Principal } from "./call.ts";
import { InferenceError, StatusCode } from "./error.ts";

/** A file that is to be part of a model version. */
export interface UploadFile {
  /** Below the folder that it belongs to, with `/` between folders. */
  readonly name: string;
  readonly bytes: number;
  /** Of its content: 64 hexadecimal digits. */
  readonly sha256: string;
  /** It lies beside the folders of the versions and belongs to all of them: `config.pbtxt`, labels. */
  readonly shared: boolean;
}

/** What is to be uploaded. */
export interface NewUpload {
  /** Undefined: the one after the highest there is, or that of an upload of the same files. */
  readonly version: number | undefined;
  readonly files: readonly UploadFile[];
  readonly principal: Principal;
}

/**
 * - uploading: parts are taken;
 * - committing: it is opened, and made visible when that went well;
 * - done: the version is in the repository.
 */
export type UploadState = "uploading" | "committing" | "done";

/** One version on its way into the repository. */
export interface Upload {
  /** Equal for uploads of the same version. */
  readonly id: string;
  readonly modelName: string;
  readonly version: number;
  readonly state: UploadState;
  readonly files: readonly UploadedFile[];
  /** Every part of a file has so many bytes, but the last. */
  readonly partBytes: number;
  /** Parts are sent to the server, or to S3 by URLs that the server signs. */
  readonly transfer: "direct" | "signed";
  /** Milliseconds since the epoch; until then it can be gone on with. */
  readonly expiresAt: number;
  /** Versions of the model that answer now, ascending; once it is done. */
  readonly servingVersions?: readonly string[];
  /** Why the version does not answer, although it is done. */
  readonly reason?: string;
}

export interface UploadedFile extends UploadFile {
  /** Numbers of its parts that are there, from 0, ascending. */
  readonly parts: readonly number[];
}

/** A part of a file of an upload, both by their numbers from 0. */
export interface PartPlace {
  readonly file: number;
  readonly part: number;
}

/** A part as it comes over the wire. */
export interface PartBody {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** What the sender says of it: 64 hexadecimal digits. */
  readonly sha256: string | undefined;
}

/** A part that is to be sent to S3. */
export interface PartToSign extends PartPlace {
  /** Of the part: 64 hexadecimal digits. */
  readonly sha256: string;
}

/** How it is sent there: by PUT, with exactly these headers. */
export interface SignedPart extends PartPlace {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Takes model versions into a repository: nobody sees anything of a version until all of it is there and has been opened.
 * Every method rejects with an InferenceError.
 */
export interface Uploads {
  /** Begins an upload, or finds the one of the same files; ALREADY_EXISTS when the version is taken. */
  begin(model: string, upload: NewUpload): Promise<Upload>;
  find(model: string, id: string): Promise<Upload>;
  /** Resolves when the part is there. */
  writePart(model: string, id: string, place: PartPlace, body: PartBody): Promise<void>;
  signParts(
    model: string,
    id: string,
    parts: readonly PartToSign[],
  ): Promise<readonly SignedPart[]>;
  /** Opens the version, makes it visible, and has it serve. What cannot be opened changes nothing. */
  commit(model: string, id: string): Promise<Upload>;
  /** Forgets what has been uploaded. */
  abort(model: string, id: string): Promise<void>;
}

/** A version that another upload has taken. */
export class UploadConflict extends InferenceError {
  /** The other one. */
  readonly upload: string;

  constructor(message: string, upload: string) {
    super(StatusCode.AlreadyExists, message);
    this.upload = upload;
  }
}

/** How many parts a file has: none when it is empty. */
export function partCount({ bytes }: Pick<UploadFile, "bytes">, partBytes: number): number {
  return Math.ceil(bytes / partBytes);
}

/** First byte and number of bytes of a part. */
export function partRange(
  { bytes }: Pick<UploadFile, "bytes">,
  partBytes: number,
  part: number,
): readonly [start: number, length: number] {
  const start = part * partBytes;
  return [start, Math.min(partBytes, bytes - start)];
}
