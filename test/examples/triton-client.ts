import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { python } from "../conformance/python.ts";
import type { TidepoolProcess } from "../helpers/tidepool-process.ts";

const run = promisify(execFile);

/** The wires that tritonclient has a module for. */
export const protocols = ["http", "grpc"] as const;

/** What infer.py is asked for. */
export interface ClientRequest {
  readonly inputs: readonly object[];
  readonly outputs: readonly string[];
  readonly version?: string;
}

/** An output as tritonclient gives it. */
export interface ClientOutput {
  readonly shape: readonly number[];
  readonly data: readonly (number | string)[];
}

/** Asks a model with the real tritonclient; rejects with what it raises. */
export async function askTriton(
  server: TidepoolProcess,
  protocol: (typeof protocols)[number],
  model: string,
  request: ClientRequest,
): Promise<Readonly<Record<string, ClientOutput>>> {
  const script = path.join(import.meta.dirname, "infer.py");
  const asked = run(python, [script, protocol, server[protocol], model], { maxBuffer: 2 ** 26 });
  asked.child.stdin?.end(JSON.stringify(request));
  return JSON.parse((await asked).stdout);
}

/** The place of the highest number. */
export function best(row: readonly (number | string)[]): number {
  const numbers = row.map(Number);
  return numbers.indexOf(Math.max(...numbers));
}
