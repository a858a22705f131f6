import { Client, credentials, Metadata } from "@grpc/grpc-js";
import type { ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import type { Type } from "protobufjs";
import { messages } from "../../repository/proto-files.ts";

/** What a message holds by its fields' names in camelCase. */
export type Fields = ReturnType<Type["toObject"]>;

const service = "inference.GRPCInferenceService";

/** A real client whose messages go through reflection, or as bytes that are no message. */
export class GrpcClient extends Client {
  /** @param address as in `localhost:8001` */
  constructor(address: string, channel = credentials.createInsecure()) {
    super(address, channel, {
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      // A connection of its own: what breaks it breaks no other client.
      "grpc.use_local_subchannel_pool": 1,
    });
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
    this.makeUnaryRequest(
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
    return this.makeBidiStreamRequest(
      `/${service}/ModelStreamInfer`,
      (message: Fields | Buffer) => encode("ModelInferRequest", message),
      (bytes) => decode("ModelStreamInferResponse", bytes),
      metadata,
    );
  }
}

/** What came over a stream until it ended; rejects with the status it ended with. */
export async function collect(stream: AsyncIterable<Fields>): Promise<Fields[]> {
  const all: Fields[] = [];
  for await (const fields of stream) all.push(fields);
  return all;
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
