import { credentials, type Metadata } from "@grpc/grpc-js";
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { DataPlane } from "../../../gateway/data-plane.ts";
import type { GrpcOptions } from "../../../gateway/grpc/options.ts";
import { createGrpcServer } from "../../../gateway/grpc/server.ts";
import type { GrpcServer } from "../../../gateway/grpc/server.ts";
import { type Fields, GrpcClient } from "../../helpers/grpc-client.ts";
import { echo, MemoryEngine } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { SilentLog } from "../../helpers/silent-log.ts";

/** A real server on a port of its own with models that echo, and a client of it. */
export class GrpcStand {
  readonly engine: MemoryEngine;
  readonly log: SilentLog;
  readonly server: GrpcServer;
  readonly port: number;
  readonly client: GrpcClient;

  private constructor(parts: Pick<GrpcStand, "engine" | "log" | "server" | "port" | "client">) {
    this.engine = parts.engine;
    this.log = parts.log;
    this.server = parts.server;
    this.port = parts.port;
    this.client = parts.client;
  }

  static async start(
    more: Partial<GrpcOptions> = {},
    channel = credentials.createInsecure(),
  ): Promise<GrpcStand> {
    const engine = new MemoryEngine();
    for (const type of ["FP32", "INT8", "UINT8", "BOOL", "INT64", "STRING"]) {
      const config = {
        maxBatchSize: 8,
        input: [modelInput("INPUT", `TYPE_${type}`, [-1])],
        output: [modelOutput("OUTPUT", `TYPE_${type}`, [-1])],
      };
      engine.add(servedModel(`echo_${type}`, config), (request) => [echo(request)]);
    }
    const log = new SilentLog();
    const plane = new DataPlane(engine, {
      name: "tidepool",
      version: "1",
      extensions: ["logging"],
    });
    const server = createGrpcServer(plane, { log, logSettings: log, ...more });
    const port = await server.listen({ host: "127.0.0.1", port: 0 });
    const client = new GrpcClient(`localhost:${port}`, channel);
    return new GrpcStand({ engine, log, server, port, client });
  }

  ask(...call: Parameters<GrpcClient["ask"]>): Promise<Fields> {
    return this.client.ask(...call);
  }

  infer(request: Fields | Buffer, metadata?: Metadata): Promise<Fields> {
    return this.client.infer(request, metadata);
  }

  stream(metadata?: Metadata): ClientDuplexStream<Fields | Buffer, Fields> {
    return this.client.stream(metadata);
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.server.close(AbortSignal.timeout(1000));
  }
}

/** A ModelInferRequest with one FP32 input as raw contents. */
export function floats(values: readonly number[], more: Fields = {}): Fields {
  return {
    modelName: "echo_FP32",
    inputs: [{ name: "INPUT", datatype: "FP32", shape: [1, values.length] }],
    rawInputContents: [Buffer.from(new Float32Array(values).buffer)],
    ...more,
  };
}
