import { status } from "@grpc/grpc-js";
import type { handleServerStreamingCall, handleUnaryCall } from "@grpc/grpc-js";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Fields } from "./keda-methods.ts";

/** A call of KEDA's that stays open until one side ends it. */
export interface OpenStream {
  end(): void;
}

/** Makes a method of a function; what it throws ends the call. */
export function unary(
  answer: (request: Fields) => Fields | Promise<Fields>,
): handleUnaryCall<Fields, Fields> {
  return async ({ request }, respond) => {
    try {
      respond(null, await answer(request));
    } catch (error) {
      respond(callStatus(error));
    }
  };
}

/**
 * Makes a method that answers again and again of a function that is given what writes, and gives what ends its work.
 * @param open Where the call is found while it is open.
 */
export function stream(
  open: Set<OpenStream>,
  begin: (request: Fields, write: (response: Fields) => void) => () => void,
): handleServerStreamingCall<Fields, Fields> {
  return (call) => {
    try {
      const end = begin(call.request, (response) => {
        if (!call.writableEnded && !call.destroyed) call.write(response);
      });
      open.add(call);
      call.on("close", () => {
        open.delete(call);
        end();
      });
    } catch (error) {
      call.emit("error", callStatus(error));
    }
  };
}

function callStatus(error: unknown): { readonly code: status; readonly details: string } {
  const { code, message } = InferenceError.from(error);
  if (code === StatusCode.InvalidArg) return { code: status.INVALID_ARGUMENT, details: message };
  return { code: status.UNAVAILABLE, details: message };
}
