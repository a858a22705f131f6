import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";

/** Where shm_open() of the C library keeps what it opens. */
const directory = "/dev/shm";

const longestName = 255;

/** Memory of the reference's Python backend, which is no client's. */
const reservedPrefix = "triton_python_backend_shm_region_";

// A client may write where it may not open: a link could lead anywhere, and a pipe would make the server wait.
const flags = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** An open shared memory object. */
export interface OpenMemory {
  readonly fd: number;
  /** When it was opened: whoever made it may change it at any time. */
  readonly size: number;
}

/** Opens a shared memory object by its key, as shm_open() does; throws the reference's texts. */
export function openKey(key: string, regionName: string): OpenMemory {
  const name = key.replace(/^\/+/u, "");
  if (name.startsWith(reservedPrefix)) {
    throw invalidArgument(
      `cannot register shared memory region '${regionName}' with key '${key}' ` +
        `as the key contains the reserved prefix '${reservedPrefix}'`,
    );
  }
  if (!isName(name)) throw notOpened(key);
  let fd: number;
  try {
    fd = openSync(`${directory}/${name}`, flags);
  } catch (cause) {
    throw notOpened(key, cause);
  }
  const stats = fstatSync(fd);
  if (stats.isFile()) return { fd, size: stats.size };
  closeSync(fd);
  throw notOpened(key);
}

function isName(name: string): boolean {
  return name !== "" && !/[/\0]/u.test(name) && Buffer.byteLength(name) <= longestName;
}

function notOpened(key: string, cause?: unknown): InferenceError {
  const text = `Unable to open shared memory region: '${key}'`;
  return new InferenceError(StatusCode.Internal, text, { cause });
}
