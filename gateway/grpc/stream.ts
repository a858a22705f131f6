import type { handleBidiStreamingCall } from "@grpc/grpc-js";
import { type Access, admit } from "../access.ts";
import { clientError } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { callFields, callOf, credentialsIn } from "./call-context.ts";
import { callStatus } from "./error-status.ts";
import { InferStream } from "./infer-stream.ts";
import type { GrpcOptions } from "./options.ts";

/** Calls that stay open until one side ends them: a closing server must ask them to. */
export interface OpenCall {
  /** Finishes what is under way, then ends the call. */
  close(): void;
}

type Duplex = Parameters<handleBidiStreamingCall<Buffer, Buffer>>[0];

/** ModelStreamInfer: many requests on one call, each with as many responses as its model gives. */
export function modelStreamInfer(
  plane: DataPlane,
  options: GrpcOptions,
  open: Set<OpenCall>,
): handleBidiStreamingCall<Buffer, Buffer> {
  const begin = (duplex: Duplex): void => {
    const stream = new InferStream(plane, options, duplex);
    open.add(stream);
    duplex.on("close", () => open.delete(stream));
  };
  const { access } = options;
  return access ? (duplex) => void beginAdmitted(duplex, access, options, begin) : begin;
}

/** Nothing is read of a call before it is let in. */
async function beginAdmitted(
  duplex: Duplex,
  access: Access,
  { log }: GrpcOptions,
  begin: (duplex: Duplex) => void,
): Promise<void> {
  try {
    await admit(access, credentialsIn(duplex.metadata), { need: "infer", model: "" });
  } catch (cause) {
    const fields = callFields(duplex.getPath(), callOf(duplex.metadata));
    duplex.emit("error", callStatus(clientError(cause, log, fields)));
    return;
  }
  if (!duplex.cancelled) begin(duplex);
}
