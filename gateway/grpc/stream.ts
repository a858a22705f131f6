import type { handleBidiStreamingCall } from "@grpc/grpc-js";
import type { DataPlane } from "../data-plane.ts";
import { InferStream } from "./infer-stream.ts";
import type { GrpcOptions } from "./options.ts";

/** Calls that stay open until one side ends them: a closing server must ask them to. */
export interface OpenCall {
  /** Finishes what is under way, then ends the call. */
  close(): void;
}

/** ModelStreamInfer: many requests on one call, each with as many responses as its model gives. */
export function modelStreamInfer(
  plane: DataPlane,
  options: GrpcOptions,
  open: Set<OpenCall>,
): handleBidiStreamingCall<Buffer, Buffer> {
  return (duplex) => {
    const stream = new InferStream(plane, options, duplex);
    open.add(stream);
    duplex.on("close", () => open.delete(stream));
  };
}
