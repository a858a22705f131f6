import { Arena } from "./arena.ts";

/** Memory shared with one process: what it is to read, and what it has written. */
export interface SharedMemory {
  readonly toProcess: Arena;
  readonly fromProcess: Arena;
  readonly sizeBytes: number;
}

/** Only as much as is used takes memory. */
const sizeBytes = 256 * 2 ** 20;

/** Undefined where the machine has no such memory: then everything goes through the socket. */
export function openSharedMemory(): SharedMemory | undefined {
  const toProcess = Arena.open(sizeBytes);
  const fromProcess = toProcess && Arena.open(sizeBytes);
  if (toProcess && fromProcess) return { toProcess, fromProcess, sizeBytes };
  toProcess?.close();
  return undefined;
}

export function closeSharedMemory(memory: SharedMemory | undefined): void {
  memory?.toProcess.close();
  memory?.fromProcess.close();
}
