import { Agent, request as httpRequest } from "node:http";
import type { IncomingHttpHeaders } from "node:http";
import { DataPlane } from "../../../gateway/data-plane.ts";
import { createHttpApp } from "../../../gateway/http/app.ts";
import type { HttpOptions } from "../../../gateway/http/options.ts";
import { listenHttp } from "../../../gateway/http/server.ts";
import type { HttpServer } from "../../../gateway/http/server.ts";
import { datatypes } from "../../../protocol/datatype.ts";
import { configDatatype } from "../../../protocol/datatype.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { echo, MemoryEngine } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { SilentLog } from "../../helpers/silent-log.ts";

/** What came back, as bytes: no client library looks at it first. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
}

export type Headers = Readonly<Record<string, string>>;

/** A real server on a port of its own, with a model for each datatype that gives its input back. */
export class HttpStand {
  readonly engine: MemoryEngine;
  readonly log: SilentLog;
  readonly plane: DataPlane;
  readonly server: HttpServer;
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(parts: Pick<HttpStand, "engine" | "log" | "plane" | "server">) {
    this.engine = parts.engine;
    this.log = parts.log;
    this.plane = parts.plane;
    this.server = parts.server;
  }

  static async start(more: Partial<HttpOptions> = {}): Promise<HttpStand> {
    const engine = new MemoryEngine();
    for (const datatype of datatypes) {
      addEcho(engine, `id_${datatype.toLowerCase()}`, [[configDatatype(datatype), [-1]]]);
    }
    addEcho(engine, "batch", [["TYPE_FP32", [4]]], { maxBatchSize: 8 });
    addEcho(engine, "pair", [
      ["TYPE_FP32", [4]],
      ["TYPE_INT32", [2]],
    ]);
    addEcho(engine, "decoupled", [["TYPE_FP32", [4]]], {
      modelTransactionPolicy: { decoupled: true },
    });
    const log = new SilentLog();
    const plane = new DataPlane(engine, {
      name: "tidepool",
      version: "1",
      extensions: ["logging"],
    });
    const app = createHttpApp(plane, { maxInputBytes: 2 ** 20, log, logSettings: log, ...more });
    const server = await listenHttp(app, { host: "127.0.0.1", port: 0 });
    return new HttpStand({ engine, log, plane, server });
  }

  get origin(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  ask(
    method: string,
    path: string,
    body?: Buffer | string,
    headers: Headers = {},
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const options = { method, headers, agent: this.#agent };
    const request = httpRequest(this.origin + path, options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        const { statusCode: status = 0, headers: given } = response;
        resolve({ status, headers: given, bytes, text: bytes.toString() });
      });
    });
    request.on("error", reject);
    request.end(body);
    return promise;
  }

  get(path: string): Promise<Answer> {
    return this.ask("GET", path);
  }

  post(path: string, body: Buffer | string | object = "", headers: Headers = {}): Promise<Answer> {
    const bytes = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    return this.ask("POST", path, bytes, headers);
  }

  infer(model: string, body: Buffer | string | object, headers: Headers = {}): Promise<Answer> {
    return this.post(`/v2/models/${model}/infer`, body, headers);
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.server.close(AbortSignal.timeout(1000));
  }
}

function addEcho(
  engine: MemoryEngine,
  name: string,
  tensors: readonly (readonly [dataType: string, dims: readonly number[]])[],
  more: Partial<ModelConfig> = {},
): void {
  const input = tensors.map(([dataType, dims], i) => modelInput(`IN${i}`, dataType, dims));
  const output = tensors.map(([dataType, dims], i) => modelOutput(`OUT${i}`, dataType, dims));
  engine.add(servedModel(name, { input, output, ...more }), (request) => [echo(request)]);
}

/** The text of an answer's `error`. */
export function errorOf(answer: Answer): string {
  return String(JSON.parse(answer.text).error);
}

/** An infer request whose tensor stands behind the JSON, and the header that says where the JSON ends. */
export function binaryInfer(head: object, tail: Uint8Array): [body: Buffer, headers: Headers] {
  const json = Buffer.from(JSON.stringify(head));
  return [Buffer.concat([json, tail]), { "Inference-Header-Content-Length": String(json.length) }];
}
