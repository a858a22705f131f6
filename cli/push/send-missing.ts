import { type FileHandle, open } from "node:fs/promises";
import { partCount, partRange } from "../../protocol/upload.ts";
import { Slots } from "../../repository/slots.ts";
import { together } from "../../repository/together.ts";
import { UsageError } from "../usage-error.ts";
import type { LocalFile } from "./model-folder.ts";
import type { RemoteUpload, UploadClient } from "./upload-client.ts";

const partsAtOnce = 4;

/** A part that the server does not have. */
interface MissingPart {
  readonly file: number;
  readonly part: number;
  readonly local: LocalFile;
}

/** Sends the parts that the server does not have yet, some of them side by side. */
export async function sendMissing(
  client: UploadClient,
  upload: RemoteUpload,
  files: readonly LocalFile[],
  onSent: (bytes: number) => void,
): Promise<void> {
  const slots = new Slots(partsAtOnce);
  await together(
    new AbortController().signal,
    missingParts(upload, files).map(({ file, part, local }) => (signal) => {
      const send = async (): Promise<void> => {
        signal.throwIfAborted();
        const bytes = await readPart(local, partRange(local, upload.part_bytes, part));
        await client.send(upload, { file, part, bytes, onSent });
      };
      return slots.run(send);
    }),
  );
}

/** How many bytes the server has. */
export function bytesThere({ files, part_bytes: partBytes }: RemoteUpload): number {
  const parts = files.flatMap((file) => file.parts.map((part) => partRange(file, partBytes, part)));
  return parts.reduce((sum, [, length]) => sum + length, 0);
}

function missingParts(
  { files, part_bytes: partBytes }: RemoteUpload,
  locals: readonly LocalFile[],
): readonly MissingPart[] {
  return files.flatMap((uploaded, file) => {
    const there = new Set(uploaded.parts);
    const local = locals.find(
      ({ name, shared }) => name === uploaded.name && shared === uploaded.shared,
    );
    if (!local) throw new Error(`the server asks for ${uploaded.name}, which was not offered`);
    const parts = Array.from({ length: partCount(uploaded, partBytes) }, (_, part) => part);
    return parts.filter((part) => !there.has(part)).map((part) => ({ file, part, local }));
  });
}

async function readPart(
  local: LocalFile,
  [start, length]: readonly [start: number, length: number],
): Promise<Buffer> {
  const handle = await open(local.path);
  try {
    return await readWhole(handle, start, length);
  } catch (cause) {
    throw new UsageError(`push: ${local.path} has changed meanwhile; push again`, { cause });
  } finally {
    await handle.close();
  }
}

async function readWhole(handle: FileHandle, start: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  for (let done = 0; done < length;) {
    const { bytesRead } = await handle.read(buffer, done, length - done, start + done);
    if (bytesRead === 0) throw new Error("the file is shorter than it was");
    done += bytesRead;
  }
  return buffer;
}
