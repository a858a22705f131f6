import { readFileSync } from "node:fs";
import path from "node:path";
import type { Answer, HttpClient } from "./http-client.ts";
import type { ModelDirectory } from "./model-directory.ts";

const fixtures = path.join(import.meta.dirname, "../fixtures/python");

/** Writes a Python model; one of the fixtures where only its name is given. */
export function pythonModel(
  models: ModelDirectory,
  name: string,
  config: string,
  source = readFileSync(path.join(fixtures, `${name}.py`), "utf8"),
): void {
  models.write(`${name}/config.pbtxt`, `backend: "python"\n${config}`);
  models.write(`${name}/1/model.py`, source);
}

/** The model that does to its process what it is told; see test/fixtures/python/moody.py. */
export function moodyModel(models: ModelDirectory, more = ""): void {
  pythonModel(
    models,
    "moody",
    `input [{ name: "ORDER" data_type: TYPE_STRING dims: [ 1 ] }]
     output [{ name: "ANSWER" data_type: TYPE_STRING dims: [ 1 ] }, { name: "HUGE" data_type: TYPE_UINT8 dims: [ -1 ] }]
     ${more}`,
  );
}

/** Asks it, and gives the whole answer. */
export function order(http: HttpClient, mood: string, more: object = {}): Promise<Answer> {
  const data = [JSON.stringify({ mood, ...more })];
  return http.infer("moody", {
    inputs: [{ name: "ORDER", datatype: "BYTES", shape: [1], data }],
    outputs: mood === "huge" ? [{ name: "HUGE", parameters: { binary_data: true } }] : [],
  });
}

/** What it says when all goes well. */
export async function said(answer: Promise<Answer>): Promise<unknown> {
  const { status, text } = await answer;
  if (status !== 200) throw new Error(text);
  return JSON.parse(JSON.parse(text).outputs[0].data[0]);
}

/** True while a process of that id lives. */
export function lives(id: unknown): boolean {
  try {
    process.kill(Number(id), 0);
    return true;
  } catch {
    return false;
  }
}
