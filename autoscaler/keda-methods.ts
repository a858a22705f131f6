import { readFileSync } from "node:fs";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import type { Method, Type } from "protobufjs";
import { parseMessages } from "../protocol/messages.ts";

/** What a message holds by its fields' names. */
export type Fields = ReturnType<Type["toObject"]>;

const serviceName = "externalscaler.ExternalScaler";

/** KEDA's contract with an external scaler as grpc-js wants it, for servers and clients. */
export function kedaMethods(): ServiceDefinition {
  const file = new URL("../protocol/proto/external-scaler.proto", import.meta.url);
  const { root } = parseMessages([readFileSync(file, "utf8")]);
  const methods = root.lookupService(serviceName).methodsArray;
  return Object.fromEntries(
    methods.map((method) => {
      const request = root.lookupType(`externalscaler.${method.requestType}`);
      const response = root.lookupType(`externalscaler.${method.responseType}`);
      return [method.name, definition(method, request, response)];
    }),
  );
}

function definition(
  { name, responseStream }: Method,
  request: Type,
  response: Type,
): MethodDefinition<Fields, Fields> {
  return {
    path: `/${serviceName}/${name}`,
    requestStream: false,
    responseStream: responseStream === true,
    requestSerialize: encoder(request),
    requestDeserialize: decoder(request),
    responseSerialize: encoder(response),
    responseDeserialize: decoder(response),
  };
}

function encoder(type: Type): (fields: Fields) => Buffer {
  return (fields) => Buffer.from(type.encode(type.fromObject(fields)).finish());
}

function decoder(type: Type): (bytes: Buffer) => Fields {
  return (bytes) => type.toObject(type.decode(bytes), { defaults: true, longs: Number });
}
