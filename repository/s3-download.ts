import { type FileHandle, mkdir, open } from "node:fs/promises";
import path from "node:path";
import type { S3Bucket, S3Checksums, S3Object } from "./s3-bucket.ts";
import { S3TransferError } from "./s3-error.ts";
import type { S3File } from "./s3-files.ts";
import { retrying, type S3Patience } from "./s3-retry.ts";
import { verifyFile } from "./s3-verify.ts";
import { Slots } from "./slots.ts";
import { together } from "./together.ts";

export interface S3Transfer {
  readonly bucket: S3Bucket;
  /** Requests for content at one time, over all downloads that share them. */
  readonly slots: Slots;
  readonly patience: S3Patience;
}

export interface DownloadTarget {
  /** Exists and is empty. */
  readonly folder: string;
  /** Told how many bytes are on disk by now; fewer than before when some have to come again. */
  readonly report: (fetchedBytes: number) => void;
  readonly signal: AbortSignal;
}

const partBytes = 8 * 2 ** 20;
/** Bytes go to disk in pieces of about so many. */
const writeBytes = 512 * 1024;
const filesAtOnce = 16;
const readOnly = 0o400;
/** A file whose content is not what S3 says it is comes again so often. */
const verifyAttempts = 3;

/**
 * Brings exactly the objects that a listing named to a folder, in parts that are fetched side by side. Every request asks
 * for the ETag of the listing, so that no file consists of two states of an object. What has come is verified.
 */
export async function download(
  files: readonly S3File[],
  target: DownloadTarget,
  transfer: S3Transfer,
): Promise<void> {
  const handles = new Slots(filesAtOnce);
  let fetched = 0;
  const count = (bytes: number): void => target.report((fetched += bytes));
  const fetchFile = async (file: S3File, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    const to = path.join(target.folder, file.path);
    await mkdir(path.dirname(to), { recursive: true, mode: 0o700 });
    const handle = await open(to, "wx+", readOnly);
    try {
      await handle.truncate(file.object.bytes);
      if (file.object.bytes === 0) return;
      await fillFile({ object: file.object, handle, transfer, count }, signal);
    } finally {
      await handle.close();
    }
  };
  await together(
    target.signal,
    files.map((file) => (signal) => handles.run(() => fetchFile(file, signal))),
  );
}

/** One object on its way to one file. */
interface FileTransfer {
  readonly object: S3Object;
  readonly handle: FileHandle;
  readonly transfer: S3Transfer;
  /** Told of bytes that have come, or that do not count any more. */
  readonly count: (bytes: number) => void;
}

async function fillFile(file: FileTransfer, signal: AbortSignal): Promise<void> {
  for (let tried = 1; ; tried++) {
    const checksums = await fetchContent(file, signal);
    try {
      await verifyFile(file.handle, file.object, checksums);
      return;
    } catch (error) {
      if (!(error instanceof S3TransferError) || tried === verifyAttempts) throw error;
      file.count(-file.object.bytes);
    }
  }
}

async function fetchContent(file: FileTransfer, signal: AbortSignal): Promise<S3Checksums> {
  const { object, transfer } = file;
  const request = (outer: AbortSignal, attempt: Attempt): Promise<S3Checksums> =>
    transfer.slots.run(() => retrying(transfer.patience, outer, attempt));
  if (object.bytes <= partBytes)
    return request(signal, (...watch) => fetchPart(file, undefined, ...watch));
  // The answer with a part tells no sum of the whole.
  const askSum = (one: AbortSignal) =>
    request(one, (inner) => transfer.bucket.checksums(object, inner));
  const [checksums = { keyed: true }] = await together(signal, [
    askSum,
    ...rangesOf(object.bytes).map(
      (range) => (one: AbortSignal) => request(one, (...watch) => fetchPart(file, range, ...watch)),
    ),
  ]);
  return checksums;
}

type Attempt = (signal: AbortSignal, alive: () => void) => Promise<S3Checksums>;
type Range = readonly [start: number, length: number];

function rangesOf(bytes: number): readonly Range[] {
  const count = Math.ceil(bytes / partBytes);
  return Array.from({ length: count }, (_, i) => {
    const start = i * partBytes;
    return [start, Math.min(partBytes, bytes - start)];
  });
}

async function fetchPart(
  { object, handle, transfer, count }: FileTransfer,
  range: Range | undefined,
  signal: AbortSignal,
  alive: () => void,
): Promise<S3Checksums> {
  const [start, length] = range ?? [0, object.bytes];
  const piece: Uint8Array[] = [];
  let pieceBytes = 0;
  let come = 0;
  const write = async (): Promise<void> => {
    if (piece.length > 0) await handle.writev(piece.splice(0), start + come - pieceBytes);
    pieceBytes = 0;
    alive();
  };
  try {
    const { stream, checksums } = await transfer.bucket.get(
      { object, ...(range && { range }) },
      signal,
    );
    for await (const chunk of stream) {
      const bytes: Uint8Array = chunk;
      if (come + bytes.length > length) throw wrongLength(length);
      piece.push(bytes);
      pieceBytes += bytes.length;
      come += bytes.length;
      count(bytes.length);
      if (pieceBytes >= writeBytes) await write();
      else alive();
    }
    await write();
    if (come < length) throw wrongLength(length);
    return checksums;
  } catch (error) {
    count(-come);
    throw error;
  }
}

function wrongLength(expected: number): S3TransferError {
  return new S3TransferError("Truncated", `the body has not the ${expected} bytes asked for`);
}
