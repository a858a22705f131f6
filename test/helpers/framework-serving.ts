import { cpSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "./eventually.ts";
import {
  bringMilliseconds,
  childrenOf,
  differenceFrom,
  type FrameworkCase,
  type FrameworkModels,
  type FrameworkName,
  sendTogether,
  writeFrameworkModels,
} from "./framework-models.ts";
import { binaryInfer, errorOf } from "./http-client.ts";
import { ModelDirectory } from "./model-directory.ts";
import { type Serving, startServing, stopServing } from "./serving.ts";

export interface FrameworkServingOptions {
  readonly loaded: readonly string[];
  /** Writes what the framework does not; gives flags for the server. */
  readonly write: (models: ModelDirectory, framework: FrameworkModels) => readonly string[];
}

/** A server with the models of a framework, for all tests of a file. */
export class FrameworkServing {
  readonly loaded: readonly string[];
  #started: (Serving & { readonly framework: FrameworkModels }) | undefined;

  /** To be made outside of tests; it is there inside of them. */
  constructor(name: FrameworkName, { loaded, write }: FrameworkServingOptions) {
    this.loaded = loaded;
    beforeAll(async () => {
      const models = new ModelDirectory();
      const framework = await writeFrameworkModels(name, models);
      const load = loaded.map((model) => `--load-model=${model}`);
      const flags = [...write(models, framework), "--model-control-mode=explicit", ...load];
      this.#started = { ...(await startServing(models, ...flags)), framework };
    }, bringMilliseconds);
    afterAll(() => stopServing(this.#running));
  }

  get #running(): Serving & { readonly framework: FrameworkModels } {
    if (!this.#started) throw new Error("the server has not been started yet");
    return this.#started;
  }

  get http(): Serving["http"] {
    return this.#running.http;
  }

  get modelsPath(): string {
    return this.#running.models.path;
  }

  get python(): string {
    return this.#running.framework.python;
  }

  caseOf(model: string): FrameworkCase {
    return this.#running.framework.caseOf(model);
  }

  /** How far the model's answer is from what numpy says. */
  difference(model: string, datatype?: string): Promise<number> {
    return differenceFrom(this.caseOf(model), this.http, model, datatype);
  }

  /** Why a model is not loaded. */
  async refusal(model: string): Promise<string> {
    return errorOf(await this.http.post(`/v2/repository/models/${model}/load`));
  }

  /** Processes of models. */
  get processes(): number {
    return childrenOf(this.#running.server.process.pid);
  }
}

/** Writes a model with the files of another one. */
export function copyModel(
  models: ModelDirectory,
  from: string,
  name: string,
  config: string,
): void {
  cpSync(path.join(models.path, from, "1"), path.join(models.path, name, "1"), { recursive: true });
  models.write(`${name}/config.pbtxt`, config);
}

/** What is the same with every framework. @param complaint of the model 'broken', whose file is none */
export function frameworkCases(serving: FrameworkServing, complaint: string): void {
  it("is refused when its file is none, without telling where it lies", async () => {
    const reason = await serving.refusal("broken");
    expect(reason).toContain(complaint);
    expect(reason).not.toContain(serving.modelsPath);
  });

  it("leaves no process when it is unloaded", async () => {
    const { loaded } = serving;
    // Those that were refused may still be on their way out.
    await eventually(() => expect(serving.processes).toBe(loaded.length));
    await serving.http.post(`/v2/repository/models/${loaded.at(-1)}/unload`);
    await eventually(() => expect(serving.processes).toBe(loaded.length - 1));
    await serving.http.post(`/v2/repository/models/${loaded.at(-1)}/load`);
  });
}

/** A model 'halves' doubles BF16. */
export function bfloatCase(serving: FrameworkServing, input: string, output: string): void {
  it("takes and gives BF16", async () => {
    // 1.5 and -2
    const given = Uint8Array.of(0xc0, 0x3f, 0x00, 0xc0);
    const parameters = { binary_data_size: given.byteLength };
    const inputs = [{ name: input, datatype: "BF16", shape: [1, 2], parameters }];
    const outputs = [{ name: output, parameters: { binary_data: true } }];
    const answer = await serving.http.infer("halves", ...binaryInfer({ inputs, outputs }, given));
    // 3 and -4
    expect([...answer.bytes.subarray(-4)]).toEqual([0x40, 0x40, 0x80, 0xc0]);
  });
}

/** A model of black pictures, 8 of which may be a batch. @param begins the first number that it answers */
export function togetherCase(
  serving: FrameworkServing,
  model: string,
  { name, shape }: { readonly name: string; readonly shape: readonly number[] },
  begins: string,
): void {
  it("runs requests together", async () => {
    const picture = new Uint8Array(shape.reduce((product, size) => product * size, 4));
    const parameters = { binary_data_size: picture.byteLength };
    const input = { name, datatype: "FP32", shape: [1, ...shape], parameters };
    const request = binaryInfer({ inputs: [input] }, picture);
    const requests = Array.from({ length: 8 }, () => request);
    const { answers, executions } = await sendTogether(serving.http, model, requests);
    for (const { text } of answers) expect(text).toContain(`"data":[${begins}`);
    expect(executions).toBeLessThan(8);
  });
}
