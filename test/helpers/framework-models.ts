import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import type { Answer, Headers, HttpClient } from "./http-client.ts";
import type { ModelDirectory } from "./model-directory.ts";

const run = promisify(execFile);
const root = path.resolve(import.meta.dirname, "../..");
const fixture = path.join(root, "test/fixtures/framework-models.py");
const maxBuffer = 2 ** 28;

export type FrameworkName = "pytorch" | "tensorflow" | "openvino";

/** What a tensor of a case holds. */
export interface CaseTensor {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

type CaseTensors = Readonly<Record<string, CaseTensor>>;

/** Inputs of a model, and the outputs that numpy says they have. */
export interface FrameworkCase {
  readonly inputs: CaseTensors;
  readonly outputs: CaseTensors;
}

/** Where a framework's environment is, and what its models answer. */
export interface FrameworkModels {
  /** The folder of the environment. */
  readonly environment: string;
  readonly python: string;
  /** Of a model of numbers. */
  caseOf(model: string): FrameworkCase;
}

/** Installing a framework takes minutes where the network is slow. */
export const bringMilliseconds = 900_000;

/** Brings a framework, if no test has before, and gives the folder of its environment. */
export async function bringFramework(name: FrameworkName): Promise<string> {
  const folder = path.join(root, ".tidepool/frameworks");
  await mkdir(folder, { recursive: true });
  // Test files that run side by side may need the same one.
  const bring = [process.execPath, path.join(root, "infra/setup/framework.js"), name];
  await run("flock", [path.join(folder, `${name}.lock`), ...bring]);
  return path.join(folder, name);
}

/** Brings a framework and has it write its models. */
export async function writeFrameworkModels(
  name: FrameworkName,
  models: ModelDirectory,
): Promise<FrameworkModels> {
  const environment = await bringFramework(name);
  const python = path.join(environment, "bin/python");
  const { stdout } = await run(python, [fixture, name, models.path], { maxBuffer });
  const cases: Readonly<Record<string, FrameworkCase>> = JSON.parse(stdout);
  return {
    environment,
    python,
    caseOf(model) {
      const found = cases[model];
      if (!found) throw new Error(`'${model}' has no case`);
      return found;
    },
  };
}

/**
 * Sends a case's inputs and compares the outputs.
 *
 * @param datatype of the inputs
 * @returns the largest difference; throws for other outputs or shapes
 */
export async function differenceFrom(
  { inputs, outputs }: FrameworkCase,
  http: HttpClient,
  model: string,
  datatype = "FP32",
): Promise<number> {
  const answer = await http.infer(model, {
    inputs: Object.entries(inputs).map(([name, tensor]) => ({ name, datatype, ...tensor })),
  });
  if (answer.status !== 200) throw new Error(answer.text);
  const found: readonly ({ name: string } & CaseTensor)[] = JSON.parse(answer.text).outputs;
  const shapes = Object.entries(outputs).map(([name, { shape }]) => `${name} [${shape.join()}]`);
  const foundShapes = found.map(({ name, shape }) => `${name} [${shape.join()}]`);
  if (foundShapes.toSorted().join() !== shapes.toSorted().join()) {
    throw new Error(`given ${foundShapes.join()}, expected ${shapes.join()}`);
  }
  const differences = found.flatMap(({ name, data }) =>
    data.map((value, i) => Math.abs(value - (outputs[name]?.data[i] ?? NaN))),
  );
  return Math.max(...differences);
}

/** Requests that were sent at the same time. */
export interface SentTogether {
  readonly answers: readonly Answer[];
  /** Of them all. */
  readonly executions: number;
}

/** Sends requests to a model at once. */
export async function sendTogether(
  http: HttpClient,
  model: string,
  requests: readonly (readonly [body: Buffer | object, headers?: Headers])[],
): Promise<SentTogether> {
  const before = await executionsOf(http, model);
  const answers = await Promise.all(requests.map((request) => http.infer(model, ...request)));
  return { answers, executions: (await executionsOf(http, model)) - before };
}

async function executionsOf(http: HttpClient, model: string): Promise<number> {
  const { text } = await http.get(`/v2/models/${model}/stats`);
  return JSON.parse(text).model_stats[0].execution_count;
}

/** The outputs of an answer to an infer request. */
export function outputsOf({ text }: Answer): readonly { name: string; data: readonly unknown[] }[] {
  return JSON.parse(text).outputs;
}

/** How many processes a process has started that live: one for each instance of a model. */
export function childrenOf(id: number | undefined): number {
  const tasks = `/proc/${id}/task`;
  const children = readdirSync(tasks).flatMap((task) =>
    readFileSync(`${tasks}/${task}/children`, "utf8").split(" ").filter(Boolean),
  );
  return children.length;
}
