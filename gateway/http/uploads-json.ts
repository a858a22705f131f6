import { type InferenceError, invalidArgument } from "../../protocol/error.ts";
import { isJsonObject, type JsonObject } from "../../protocol/json-access.ts";
import type {
  NewUpload,
  PartToSign,
  SignedPart,
  Upload,
  UploadFile,
} from "../../protocol/upload.ts";

const maxSignedParts = 100;

/** Reads what is to be uploaded: `{"version": 3, "files": [{"name", "bytes", "sha256", "shared"}]}`. */
export function uploadFrom(body: unknown): Omit<NewUpload, "principal"> {
  const { version, files } = objectOf(body, "upload");
  if (version !== undefined && typeof version !== "number")
    throw wrong("version", version, "a whole number");
  return { version, files: listOf(files, "files").map(fileFrom) };
}

/** Reads which parts are to be signed: `{"parts": [{"file", "part", "sha256"}]}`. */
export function partsFrom(body: unknown): readonly PartToSign[] {
  const parts = listOf(objectOf(body, "parts")["parts"], "parts");
  if (parts.length > maxSignedParts)
    throw invalidArgument(`parts: given ${parts.length}, expected at most ${maxSignedParts}`);
  return parts.map((one) => {
    const { file, part, sha256 } = objectOf(one, "part");
    return {
      file: numberOf(file, "file"),
      part: numberOf(part, "part"),
      sha256: digestOf(sha256),
    };
  });
}

/** An upload as clients read it. */
export function uploadJson(upload: Upload): object {
  const { servingVersions, reason } = upload;
  return {
    id: upload.id,
    model_name: upload.modelName,
    version: String(upload.version),
    state: upload.state,
    transfer: upload.transfer,
    part_bytes: upload.partBytes,
    expires_at: new Date(upload.expiresAt).toISOString(),
    files: upload.files,
    ...(servingVersions && { serving_versions: servingVersions }),
    ...(reason !== undefined && { reason }),
  };
}

/** Where parts are to be sent, as clients read it. */
export function signedPartsJson(parts: readonly SignedPart[]): object {
  return { parts };
}

function fileFrom(value: unknown): UploadFile {
  const { name, bytes, sha256, shared = false } = objectOf(value, "file");
  if (typeof name !== "string") throw wrong("name", name, "a text");
  if (typeof shared !== "boolean") throw wrong("shared", shared, "true or false");
  return { name, bytes: numberOf(bytes, "bytes"), sha256: digestOf(sha256), shared };
}

function objectOf(value: unknown, subject: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw wrong(subject, value, "a JSON object");
}

function listOf(value: unknown, subject: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw wrong(subject, value, "a list");
}

function numberOf(value: unknown, subject: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw wrong(subject, value, "a whole number");
}

function digestOf(value: unknown): string {
  if (typeof value === "string" && /^[0-9a-f]{64}$/u.test(value)) return value;
  throw wrong("sha256", value, "64 lower-case hexadecimal digits");
}

function wrong(subject: string, given: unknown, expected: string): InferenceError {
  const shown = given === undefined ? "nothing" : JSON.stringify(given, undefined, 0).slice(0, 64);
  return invalidArgument(`${subject}: given ${shown}, expected ${expected}`);
}
