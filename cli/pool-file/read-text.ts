import { createReadStream } from "node:fs";
import { UsageError } from "../usage-error.ts";

const mostBytes = 2 ** 20;

/** The text of a small file of settings; throws a UsageError for what cannot be read, is too long, or is no text. */
export async function readText(path: string, holding: string): Promise<string> {
  // One byte more than may be shows that there is too much, also where nothing tells the size before, as in a pipe.
  const bytes = await readStart(path, holding, mostBytes + 1);
  if (bytes.length > mostBytes) {
    throw new UsageError(`${path}: given more than ${mostBytes} bytes, expected at most as many`);
  }
  return decode(bytes, path);
}

async function readStart(path: string, holding: string, length: number): Promise<Buffer> {
  try {
    return Buffer.concat(await createReadStream(path, { end: length - 1 }).toArray());
  } catch (cause) {
    throw new UsageError(`${path}: given no file that can be read, expected one with ${holding}`, {
      cause,
    });
  }
}

function decode(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new UsageError(`${path}: given bytes that are no text, expected UTF-8`, { cause });
  }
}
