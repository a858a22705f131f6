import { createServer } from "node:net";
import type { Server as NetServer, Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from "@grpc/grpc-js";
import type { DataPlane } from "../data-plane.ts";
import { listen, type ListenAddress } from "../listen.ts";
import { noRestrictions } from "../restrictions.ts";
import { type Handshakes, type PortTls, secure, secureOptions } from "../tls/secure-server.ts";
import { controlMethods } from "./control.ts";
import { grpcConnections } from "./connections.ts";
import { guardCalls } from "./guard-calls.ts";
import { healthMethods } from "./health.ts";
import { inferAnswer, modelInfer } from "./inference.ts";
import { OpenCalls } from "./open-calls.ts";
import { channelOptions } from "./options.ts";
import type { GrpcOptions } from "./options.ts";
import { restrictCalls } from "./restrict-calls.ts";
import { addService } from "./services.ts";
import { modelStreamInfer } from "./stream.ts";

/** A gRPC server that speaks the v2 protocol and the standard health check. */
export interface GrpcServer {
  /** Resolves with the port; rejects with the system's error when the address cannot be had. */
  listen(address: ListenAddress): Promise<number>;
  /** Takes no new call and resolves when every open one has ended; those left when the signal comes are cut off. */
  close(signal: AbortSignal): Promise<void>;
}

/** A connection that we have ended gets so long to be ended by the client. */
const goodbyeMilliseconds = 500;

/** So many may be open; others are closed at once. */
const defaultMaxConnections = 10_000;

export function createGrpcServer(plane: DataPlane, options: GrpcOptions): GrpcServer {
  const open = new OpenCalls();
  const { restrictions = noRestrictions, access, audit } = options;
  const restricted = restrictions.size > 0;
  // An interceptor costs something in every call. The first one sees a call first.
  const interceptors = [
    ...(access ? [guardCalls(access, options)] : []),
    ...(restricted ? [restrictCalls(restrictions, audit)] : []),
  ];
  // It writes a line for each odd header that a client sends.
  setLogVerbosity(logVerbosity.NONE);
  const server = new Server({ ...channelOptions(options), interceptors });
  const answer = inferAnswer(plane, options);
  addService(server, "inference.GRPCInferenceService", {
    ...controlMethods(plane, options),
    ModelInfer: modelInfer(answer, options),
    ModelStreamInfer: modelStreamInfer(plane, options, open),
  });
  addService(server, "grpc.health.v1.Health", healthMethods(plane, options, open));
  // Makes the HTTP/2 server to which calls are given; no connection ever gets to it.
  server.createConnectionInjector(ServerCredentials.createInsecure());
  const isPlain = !restricted && !options.headerForwardPattern;
  const connect = grpcConnections({
    server,
    answer: isPlain ? answer : undefined,
    access,
    admission: options.admission,
    failed: (err) => options.log.error("a gRPC connection failed", { err }),
  });
  const sockets = new Set<Socket>();
  const { listener, handshakes } = createDoor(options.tls, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // A client that is gone without a word would never say goodbye.
    socket.on("finish", () => setTimeout(() => socket.destroy(), goodbyeMilliseconds).unref());
    connect(socket);
  });
  listener.maxConnections = options.maxConnections ?? defaultMaxConnections;
  // grpc-js' own forceShutdown() leaves connections open while channelz is off.
  const cutOff = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    listen: (address) => listen(listener, address),
    close: async (signal) => {
      const ended = Promise.all([stopListening(listener), shutDown(server)]);
      handshakes?.end();
      open.close();
      signal.addEventListener("abort", cutOff, { once: true });
      if (signal.aborted) cutOff();
      await ended;
      signal.removeEventListener("abort", cutOff);
    },
  };
}

interface Door {
  readonly listener: NetServer;
  readonly handshakes?: Handshakes;
}

/** Connections get to grpc-js deciphered, so that TLS is the same here as everywhere. */
function createDoor(tls: PortTls | undefined, enter: (socket: Socket) => void): Door {
  if (!tls) return { listener: createServer({ noDelay: true }, enter) };
  const listener = createSecureServer({ noDelay: true, ...secureOptions(tls, "h2") }, enter);
  return { listener, handshakes: secure(listener, tls) };
}

function stopListening(listener: NetServer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (listener.listening) listener.close(() => resolve());
  else resolve();
  return promise;
}

/** Tells clients to take their next calls elsewhere; resolves when the last connection has ended. */
function shutDown(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.tryShutdown(() => resolve());
  return promise;
}
