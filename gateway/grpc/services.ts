import type { Server, UntypedHandleCall } from "@grpc/grpc-js";
import type { GrpcMethodName } from "../api-category.ts";

/** Methods by their names; one without a category does not compile. */
export type GrpcMethods = Readonly<Partial<Record<GrpcMethodName, UntypedHandleCall>>>;

/** Which sides of a method send more than one message; those that are not named here are unary. */
const streaming: Readonly<
  Record<string, { readonly request: boolean; readonly response: boolean }>
> = {
  ModelStreamInfer: { request: true, response: true },
  Watch: { request: false, response: true },
};

const unary = { request: false, response: false };

/**
 * Puts methods on a server under a service's full name. Messages cross as bytes: every method has its own codec,
 * so that a message which cannot be read ends in our error and not in grpc-js' one.
 */
export function addService(server: Server, service: string, methods: GrpcMethods): void {
  const definitions = Object.keys(methods).map((name) => [name, definition(service, name)]);
  server.addService(Object.fromEntries(definitions), { ...methods });
}

function definition(service: string, name: string): object {
  const { request, response } = streaming[name] ?? unary;
  return {
    path: `/${service}/${name}`,
    requestStream: request,
    responseStream: response,
    requestDeserialize: bytes,
    requestSerialize: bytes,
    responseDeserialize: bytes,
    responseSerialize: bytes,
  };
}

function bytes(message: Buffer): Buffer {
  return message;
}
