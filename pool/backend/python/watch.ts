import { readFileSync } from "node:fs";
import type { PythonOptions } from "./options.ts";
import type { PythonProcess } from "./process.ts";

const lookMilliseconds = 200;
const kilobyte = 1024;

/**
 * Ends a process whose execution takes too long, or that takes too much memory.
 *
 * @param busySince when the execution began that goes on now, in milliseconds of `performance.now()`; Infinity for none
 * @returns stops watching
 */
export function watchProcess(
  process: PythonProcess,
  options: Pick<PythonOptions, "executeTimeoutMilliseconds" | "memoryLimitBytes">,
  busySince: () => number,
): () => void {
  const { executeTimeoutMilliseconds, memoryLimitBytes } = options;
  const timer = setInterval(() => {
    if (performance.now() - busySince() > executeTimeoutMilliseconds) {
      const seconds = executeTimeoutMilliseconds / 1000;
      process.kill(`it took longer than --python-execute-timeout (${seconds} s)`);
    } else if (memoryLimitBytes !== Infinity && residentBytes(process.id) > memoryLimitBytes) {
      const mebibytes = memoryLimitBytes / 2 ** 20;
      process.kill(`it took more memory than --python-memory-limit (${mebibytes} MiB)`);
    }
  }, lookMilliseconds);
  timer.unref();
  return () => clearInterval(timer);
}

/** Without memory that is shared with this server. 0 where the system does not tell. */
function residentBytes(id: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${id}/status`, "utf8");
    const kilobytes = [...status.matchAll(/^Rss(?:Anon|File):\s+(\d+) kB$/gm)].map((found) =>
      Number(found[1]),
    );
    return kilobytes.reduce((sum, part) => sum + part, 0) * kilobyte;
  } catch {
    return 0;
  }
}
