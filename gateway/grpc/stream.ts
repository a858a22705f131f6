import type { handleBidiStreamingCall } from "@grpc/grpc-js";
import type { DataPlane } from "../data-plane.ts";
import { InferStream } from "./infer-stream.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { GrpcOptions } from "./options.ts";

/** ModelStreamInfer: many requests on one call, each with as many responses as its model gives. */
export function modelStreamInfer(
  plane: DataPlane,
  options: GrpcOptions,
  open: OpenCalls,
): handleBidiStreamingCall<Buffer, Buffer> {
  return (duplex) => {
    const stream = new InferStream(plane, options, duplex);
    open.add(stream);
    duplex.on("close", () => open.delete(stream));
  };
}
