import { readFileSync } from "node:fs";
import path from "node:path";
import { runPython } from "./python.ts";
import type { RunningServer } from "./servers.ts";

/** What one case saw of a server: JSON of its own shape, or why it could not look. */
export interface Observation {
  readonly case: string;
  readonly observed?: unknown;
  readonly failed?: string;
}

/** Where this server answers otherwise than the reference, on purpose, and why. */
export interface Difference {
  readonly case: string;
  /** Keys that lead to the part that differs; empty: all of it. */
  readonly at: readonly string[];
  readonly tidepool: unknown;
  readonly reason: string;
}

/** Runs all cases against a server, one after the other, as the real clients of the protocol. */
export async function runCases(
  server: RunningServer,
  ...options: string[]
): Promise<Map<string, Observation>> {
  const observations = new Map<string, Observation>();
  const places = [server.http, server.grpc, server.repository];
  for await (const line of runPython("run.py", ...places, ...options)) {
    const observation: Observation = JSON.parse(line);
    observations.set(observation.case, observation);
  }
  return observations;
}

/** What the reference server answered when it was last asked. */
function readRecorded(): Map<string, Observation> {
  const lines = readFileSync(recordedPath, "utf8").trimEnd().split("\n");
  const observations = lines.map((line): Observation => JSON.parse(line));
  return new Map(observations.map((observation) => [observation.case, observation]));
}

export function readDifferences(): readonly Difference[] {
  return JSON.parse(readFileSync(path.join(import.meta.dirname, "differences.json"), "utf8"));
}

/** What this server must answer in every case: as recorded, but for the known differences. */
export function expectations(): Map<string, unknown> {
  const expected = new Map<string, unknown>();
  for (const [title, { observed }] of readRecorded()) expected.set(title, observed);
  for (const difference of readDifferences()) {
    const before = structuredClone(expected.get(difference.case));
    expected.set(difference.case, replaced(before, difference.at, difference.tidepool));
  }
  return expected;
}

export const recordedPath = path.join(import.meta.dirname, "recorded.jsonl");

function replaced(value: unknown, at: readonly string[], by: unknown): unknown {
  const [key, ...rest] = at;
  if (key === undefined) return by;
  if (typeof value !== "object" || value === null || !(key in value)) {
    throw new Error(`differences.json: nothing was recorded at '${key}'`);
  }
  Reflect.set(value, key, replaced(Reflect.get(value, key), rest, by));
  return value;
}
