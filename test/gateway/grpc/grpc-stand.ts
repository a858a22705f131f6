import { Client, credentials, Metadata } from "@grpc/grpc-js";
import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import type { Type } from "protobufjs";
import { DataPlane } from "../../../gateway/data-plane.ts";
import type { GrpcOptions } from "../../../gateway/grpc/options.ts";
import { createGrpcServer } from "../../../gateway/grpc/server.ts";
import type { GrpcServer } from "../../../gateway/grpc/server.ts";
import { messages } from "../../../repository/proto-files.ts";
import { echo, MemoryEngine } from "../../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { SilentLog } from "../../helpers/silent-log.ts";

/** What a message holds by its fields' names in camelCase. */
export type Fields = ReturnType<Type["toObject"]>;

const service = "inference.GRPCInferenceService";

/** A real server on a port of its own with models that echo, and a real client whose messages go through reflection. */
export class GrpcStand {
  readonly engine: MemoryEngine;
  readonly log: SilentLog;
  readonly server: GrpcServer;
  readonly port: number;
  readonly client: Client;

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
    const client = new Client(`localhost:${port}`, channel, {
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
    });
    return new GrpcStand({ engine, log, server, port, client });
  }

  /** A unary call; rejects with the ServiceError of a failed one. */
  ask(
    method: string,
    request: Fields | Buffer,
    { metadata = new Metadata(), deadline }: { metadata?: Metadata; deadline?: number } = {},
  ): Promise<Fields> {
    const path = method.includes("/") ? method : `${service}/${method}`;
    const [requestType, responseType] = typesOf(path);
    const { promise, resolve, reject } = Promise.withResolvers<Fields>();
    this.client.makeUnaryRequest(
      `/${path}`,
      (message: Fields | Buffer) => encode(requestType, message),
      (bytes) => decode(responseType, bytes),
      request,
      metadata,
      deadline === undefined ? {} : { deadline: Date.now() + deadline },
      (error: ServiceError | null, response?: Fields) => {
        if (error) reject(error);
        else resolve(response ?? {});
      },
    );
    return promise;
  }

  infer(request: Fields | Buffer, metadata?: Metadata): Promise<Fields> {
    return this.ask("ModelInfer", request, metadata ? { metadata } : {});
  }

  stream(metadata = new Metadata()): ClientDuplexStream<Fields | Buffer, Fields> {
    return this.client.makeBidiStreamRequest(
      `/${service}/ModelStreamInfer`,
      (message: Fields | Buffer) => encode("ModelInferRequest", message),
      (bytes) => decode("ModelStreamInferResponse", bytes),
      metadata,
    );
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.server.close(AbortSignal.timeout(1000));
  }
}

/** What came over a stream until it ended; rejects with the status it ended with. */
export async function collect(stream: AsyncIterable<Fields>): Promise<Fields[]> {
  const all: Fields[] = [];
  for await (const fields of stream) all.push(fields);
  return all;
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

export function encode(type: string, message: Fields | Buffer): Buffer {
  if (Buffer.isBuffer(message)) return message;
  const reflected = messages().type(type);
  return Buffer.from(reflected.encode(reflected.fromObject(message)).finish());
}

export function decode(type: string, bytes: Uint8Array): Fields {
  const reflected = messages().type(type);
  return reflected.toObject(reflected.decode(bytes), { enums: String, longs: Number });
}

function typesOf(path: string): [request: string, response: string] {
  const name = path.endsWith("Health/Check")
    ? "grpc.health.v1.HealthCheck"
    : path.slice(path.lastIndexOf("/") + 1);
  return [`${name}Request`, `${name}Response`];
}
