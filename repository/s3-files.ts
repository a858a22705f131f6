import { type InferenceError, invalidArgument } from "../protocol/error.ts";
import type { FileStamp } from "./file-stamps.ts";
import type { S3Object } from "./s3-bucket.ts";

/** An object as a file of a model. */
export interface S3File {
  /** Below the model's folder. */
  readonly path: string;
  readonly object: S3Object;
}

/** Everything of one model in S3, as if it lay in a folder. */
export interface S3Files {
  readonly files: readonly S3File[];
  /** Files and folders in the order of paths. */
  readonly stamps: readonly FileStamp[];
}

const maxDepth = 16;
const maxSegmentBytes = 255;
// oxlint-disable-next-line no-control-regex -- control characters are what it refuses
const forbidden = /^\.{0,2}$|[\\\u0000-\u001f\u007f]/;

/**
 * Reads the objects below a model's prefix as files and folders, as a local disk can have them. An object whose key ends
 * in "/" stands for a folder. Throws INVALID_ARG for keys that no folder could hold.
 */
export function s3Files(prefix: string, objects: readonly S3Object[]): S3Files {
  const stamps = new Map<string, FileStamp>();
  const files: S3File[] = [];
  for (const object of objects) {
    const path = object.key.slice(prefix.length);
    const isFolder = path === "" || path.endsWith("/");
    const segments = (isFolder ? path.slice(0, -1) : path).split("/");
    if (path !== "") checkSegments(path, segments);
    if (isFolder) checkEmpty(path, object);
    const folders = isFolder ? segments.length : segments.length - 1;
    for (let depth = 1; depth <= folders; depth++)
      addStamp(stamps, { path: segments.slice(0, depth).join("/"), stamp: "folder" });
    if (isFolder) continue;
    addStamp(stamps, { path, stamp: `${object.etag}:${object.bytes}` });
    files.push({ path, object });
  }
  stamps.delete("");
  return { files, stamps: [...stamps.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1)) };
}

function checkSegments(path: string, segments: readonly string[]): void {
  if (!segments.every(isSegment) || segments.length > maxDepth)
    throw invalidKey(path, "expected the path of a file");
}

function isSegment(text: string): boolean {
  return !forbidden.test(text) && Buffer.byteLength(text) <= maxSegmentBytes;
}

function checkEmpty(path: string, { bytes }: S3Object): void {
  if (bytes > 0) throw invalidKey(path, "expected no content in a folder");
}

function addStamp(stamps: Map<string, FileStamp>, stamp: Omit<FileStamp, "isDirectory">): void {
  const isDirectory = stamp.stamp === "folder";
  const other = stamps.get(stamp.path);
  if (other && other.isDirectory !== isDirectory)
    throw invalidKey(stamp.path, "expected a file or a folder, and not both");
  stamps.set(stamp.path, { ...stamp, isDirectory });
}

function invalidKey(path: string, text: string): InferenceError {
  const shown = JSON.stringify(path.length > 64 ? `${path.slice(0, 64)}…` : path);
  return invalidArgument(`object in S3: given the key ${shown}, ${text}`);
}
