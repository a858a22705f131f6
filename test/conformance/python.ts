import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";

const here = import.meta.dirname;

/** The Python that has the real client: the one that the set-up made, unless TEST_PYTHON names another. */
export const python =
  process.env["TEST_PYTHON"] ?? path.join(here, "../../.tidepool/venv/bin/python");

/** Runs a script of this folder and gives the lines that it prints; rejects with its complaints when it fails. */
export async function* runPython(script: string, ...parameters: string[]): AsyncIterable<string> {
  const child = spawn(python, [path.join(here, script), ...parameters], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  });
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => (complaints += chunk.toString()));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  // Who stops reading lines must still hear of a failure, and nobody hears of it twice.
  ended.catch(() => {});
  yield* createInterface({ input: child.stdout });
  const status = await ended;
  if (status !== 0) throw new Error(`${script} ended with ${status}: ${complaints.slice(-4000)}`);
}
