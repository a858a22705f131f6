import type { Http2Server } from "node:http2";
import type { Duplex } from "node:stream";
import type { Server } from "@grpc/grpc-js";
import { type Access, admitKnown } from "../access.ts";
import type { Admission } from "../admission.ts";
import { credentialsIn } from "../header-credentials.ts";
import { Http2Connection } from "../http2/connection.ts";
import { NodeSession } from "../http2/node-session.ts";
import { NodeStream } from "../http2/node-stream.ts";
import type { RequestHead } from "../http2/request-head.ts";
import type { Http2Stream } from "../http2/stream.ts";
import type { InferAnswer } from "./inference.ts";
import { isOrdinary, type Leave, OrdinaryCall } from "./ordinary-call.ts";

/** Calls that one connection may have open; a client with more of them waits. */
const maxStreams = 10_000;

export interface ConnectionParts {
  readonly server: Server;
  /**
   * Takes ordinary calls of ModelInfer past grpc-js. Interceptors are passed by: undefined where there are others than the
   * one that asks who calls.
   */
  readonly answer: InferAnswer | undefined;
  /** Without it nobody is asked for a key. */
  readonly access: Access | undefined;
  /** Without it every call is let in. */
  readonly admission: Admission | undefined;
  readonly failed: (error: unknown) => void;
}

/**
 * Speaks HTTP/2 for grpc-js on connections from elsewhere. node's own HTTP/2 costs several times what an ordinary call
 * does, and every other call is given to grpc-js as node would give it.
 */
export function grpcConnections(parts: ConnectionParts): (socket: Duplex) => void {
  const { server, answer, access, admission, failed } = parts;
  const http2Server = http2ServerOf(server);
  return (socket) => {
    const toGrpc = (stream: Http2Stream, head: RequestHead): NodeStream => {
      const nodeStream = new NodeStream(stream, session);
      http2Server.emit("stream", nodeStream, head.headers);
      return nodeStream;
    };
    const open = (stream: Http2Stream, head: RequestHead): void => {
      if (!answer || !isOrdinary(head) || !mayInfer(access, head)) {
        toGrpc(stream, head);
        return;
      }
      const leave: Leave = (consumed, piece) => {
        const nodeStream = toGrpc(stream, head);
        if (consumed.length > 0) nodeStream.push(consumed);
        stream.reader.data(piece);
      };
      stream.reader = new OrdinaryCall(stream, head, { answer, admission }, leave);
    };
    const session = new NodeSession(new Http2Connection(socket, { maxStreams, open, failed }));
    http2Server.emit("session", session);
  };
}

/**
 * Looks who calls before anything is read; which model it is about is looked at when that is known. Who is not known at
 * once, or may not infer, is for grpc-js.
 */
function mayInfer(access: Access | undefined, head: RequestHead): boolean {
  if (!access) return true;
  return (
    admitKnown(access, credentialsIn(head.headers), { need: "infer", model: "" }) !== undefined
  );
}

/** The HTTP/2 server under a gRPC server, which grpc-js keeps to itself. */
function http2ServerOf(server: Server): Http2Server {
  const servers: ReadonlyMap<Http2Server, unknown> | undefined = Reflect.get(
    server,
    "http2Servers",
  );
  for (const found of servers?.keys() ?? []) return found;
  throw new Error("grpc-js: given a version without http2Servers, expected 1.14");
}
