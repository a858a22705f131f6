import { DataPlane } from "../../../gateway/data-plane.ts";
import { createHttpApp } from "../../../gateway/http/app.ts";
import type { HttpOptions } from "../../../gateway/http/options.ts";
import { listenHttp } from "../../../gateway/http/server.ts";
import type { HttpAddress, HttpServer } from "../../../gateway/http/server.ts";
import { datatypes } from "../../../protocol/datatype.ts";
import { configDatatype } from "../../../protocol/datatype.ts";
import type { ModelConfig } from "../../../protocol/model-config.ts";
import { MemoryJobs } from "../../../serving/memory-jobs.ts";
import type { Uploads } from "../../../protocol/upload.ts";
import { HttpClient } from "../../helpers/http-client.ts";
import { echo, MemoryEngine } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { SilentLog } from "../../helpers/silent-log.ts";
import { standLimits } from "../../serving/job-cases.ts";

/** A real server on a port of its own, with a model for each datatype that gives its input back. */
export class HttpStand extends HttpClient {
  readonly engine: MemoryEngine;
  readonly log: SilentLog;
  readonly plane: DataPlane;
  readonly server: HttpServer;

  private constructor(parts: Pick<HttpStand, "engine" | "log" | "plane" | "server">) {
    super(`127.0.0.1:${parts.server.port}`);
    this.engine = parts.engine;
    this.log = parts.log;
    this.plane = parts.plane;
    this.server = parts.server;
  }

  static async start(
    more: Partial<HttpOptions> = {},
    address: Partial<HttpAddress> = {},
    uploads?: Uploads,
  ): Promise<HttpStand> {
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
    const jobs = new MemoryJobs({ ...standLimits, engine, attempts: 1, maxBytes: 2 ** 20 });
    const metadata = { name: "tidepool", version: "1", extensions: ["logging"] };
    const plane = new DataPlane(engine, metadata, jobs, uploads);
    const app = createHttpApp(plane, { maxInputBytes: 2 ** 20, log, logSettings: log, ...more });
    const server = await listenHttp(app, { host: "127.0.0.1", port: 0, ...address });
    return new HttpStand({ engine, log, plane, server });
  }

  async stop(): Promise<void> {
    this.close();
    this.plane.jobs?.close();
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
