import { createServer } from "node:net";
import type { Server as NetServer, Socket } from "node:net";
import { Server } from "@grpc/grpc-js";
import type { DataPlane } from "../data-plane.ts";
import { listen, type ListenAddress } from "../listen.ts";
import { noRestrictions } from "../restrictions.ts";
import { controlMethods } from "./control.ts";
import { addFastLane } from "./fast-lane.ts";
import { widenWindows } from "./flow-control.ts";
import { healthMethods } from "./health.ts";
import { inferAnswer, modelInfer } from "./inference.ts";
import { channelOptions, serverCredentials } from "./options.ts";
import type { GrpcOptions } from "./options.ts";
import { restrictCalls } from "./restrict-calls.ts";
import { addService } from "./services.ts";
import { modelStreamInfer } from "./stream.ts";
import type { OpenCall } from "./stream.ts";

/** A gRPC server that speaks the v2 protocol and the standard health check. */
export interface GrpcServer {
  /** Resolves with the port; rejects with the system's error when the address cannot be had. */
  listen(address: ListenAddress): Promise<number>;
  /** Takes no new call and resolves when every open one has ended; those left when the signal comes are cut off. */
  close(signal: AbortSignal): Promise<void>;
}

/** A connection that we have ended gets so long to be ended by the client. */
const goodbyeMilliseconds = 500;

export function createGrpcServer(plane: DataPlane, options: GrpcOptions): GrpcServer {
  const open = new Set<OpenCall>();
  const { restrictions = noRestrictions } = options;
  // An interceptor costs something in every call.
  const interceptors = restrictions.size > 0 ? [restrictCalls(restrictions)] : [];
  const server = new Server({ ...channelOptions(options), interceptors });
  const answer = inferAnswer(plane, options);
  addService(server, "inference.GRPCInferenceService", {
    ...controlMethods(plane, options),
    ModelInfer: modelInfer(answer, options),
    ModelStreamInfer: modelStreamInfer(plane, options, open),
  });
  addService(server, "grpc.health.v1.Health", healthMethods(plane, options, open));
  const connections = server.createConnectionInjector(serverCredentials(options));
  widenWindows(server);
  if (interceptors.length === 0 && !options.headerForwardPattern) addFastLane(server, answer);
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // A client that is gone without a word would never say goodbye.
    socket.on("finish", () => setTimeout(() => socket.destroy(), goodbyeMilliseconds).unref());
    connections.injectConnection(socket);
  });
  // grpc-js' own forceShutdown() leaves connections open while channelz is off.
  const cutOff = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    listen: (address) => listen(listener, address),
    close: async (signal) => {
      const ended = Promise.all([stopListening(listener), shutDown(server)]);
      for (const call of open) call.close();
      signal.addEventListener("abort", cutOff, { once: true });
      if (signal.aborted) cutOff();
      await ended;
      signal.removeEventListener("abort", cutOff);
    },
  };
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
