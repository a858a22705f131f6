import { writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { expectations, recordedPath, runCases, type Observation } from "./cases.ts";
import { startReference, startWithModels, type RunningServer } from "./servers.ts";

/**
 * Asks the real reference server and this one the same questions, keeps the reference's answers as what the
 * conformance test expects, and prints what differs; ends with 1 if a difference is not a known one.
 */
async function compareReference(): Promise<number> {
  const reference = await observe(startReference, "--reference");
  const lines = [...reference.values()].map((observation) => `${JSON.stringify(observation)}\n`);
  writeFileSync(recordedPath, lines.join(""));
  const tidepool = await observe(() => startWithModels("serve"));
  const expected = expectations();
  let unknown = 0;
  for (const [title, { observed, failed }] of tidepool) {
    const theirs = reference.get(title)?.observed;
    if (isDeepStrictEqual(observed, theirs)) continue;
    const known = failed === undefined && isDeepStrictEqual(observed, expected.get(title));
    if (!known) unknown++;
    print(`${known ? "known difference" : "DIFFERENCE"}: ${title}`);
    print(`  reference: ${JSON.stringify(theirs)}`);
    print(`  tidepool:  ${failed ?? JSON.stringify(observed)}`);
  }
  print(`${tidepool.size} cases, ${unknown} unknown differences`);
  return unknown === 0 ? 0 : 1;
}

async function observe(
  start: () => Promise<RunningServer>,
  ...options: string[]
): Promise<Map<string, Observation>> {
  const server = await start();
  try {
    return await runCases(server, ...options);
  } finally {
    await server.stop();
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exitCode = await compareReference();
