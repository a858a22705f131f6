import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

const main = path.resolve(import.meta.dirname, "../../cli/main.ts");
const run = promisify(execFile);

/** What `tidepool keys` prints. Rejects when it fails, with its texts in the error. */
export async function keysCommand(
  ...args: readonly string[]
): Promise<{ readonly out: string; readonly told: string }> {
  const { stdout, stderr } = await run(process.execPath, [main, "keys", ...args]);
  return { out: stdout.trim(), told: stderr.trim() };
}
