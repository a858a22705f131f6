import type { handleServerStreamingCall } from "@grpc/grpc-js";
import { messages } from "../../repository/proto-files.ts";
import { anonymous } from "../../protocol/call.ts";
import { admit } from "../access.ts";
import { clientError, logAnswered } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { callFields, credentialsIn } from "./call-context.ts";
import { callStatus } from "./error-status.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { GrpcOptions } from "./options.ts";
import type { GrpcMethods } from "./services.ts";
import { encode, unaryMethod } from "./unary-method.ts";

/** How often a watcher's status is looked at again, in milliseconds. */
const watchInterval = 1000;

type ServingStatus = "SERVING" | "NOT_SERVING";

/** `grpc.health.v1.Health`: every service it is asked about is the whole server, as with the reference. */
export function healthMethods(
  plane: DataPlane,
  options: GrpcOptions,
  open: OpenCalls,
): GrpcMethods {
  return {
    Check: unaryMethod(
      "grpc.health.v1.HealthCheck",
      async () => ({ status: await servingStatus(plane) }),
      options,
    ),
    Watch: watch(plane, options, open),
  };
}

/** Sends the status at once, and again whenever it has changed. */
function watch(
  plane: DataPlane,
  { access, log }: GrpcOptions,
  open: OpenCalls,
): handleServerStreamingCall<Buffer, Buffer> {
  const response = messages().type("grpc.health.v1.HealthCheckResponse");
  return (call) => {
    const fields = callFields(call.getPath(), {
      principal: anonymous,
      receivedAt: performance.now(),
    });
    let failed = false;
    let last: ServingStatus | undefined;
    const look = async (): Promise<void> => {
      if (access) await admit(access, credentialsIn(call.metadata), { need: "health", model: "" });
      const status = await servingStatus(plane);
      if (status === last || call.writableEnded || call.destroyed) return;
      last = status;
      call.write(encode(response, { status }));
    };
    const lookOrFail = (): void => {
      look().catch((error: unknown) => {
        failed = true;
        call.emit("error", callStatus(clientError(error, log, fields)));
      });
    };
    lookOrFail();
    const timer = setInterval(lookOrFail, watchInterval).unref();
    const watcher = { close: () => call.end() };
    open.add(watcher);
    call.on("close", () => {
      clearInterval(timer);
      open.delete(watcher);
      if (log.verboseLevel > 0 && !failed) logAnswered(log, fields);
    });
  };
}

async function servingStatus(plane: DataPlane): Promise<ServingStatus> {
  return (await plane.ready()) ? "SERVING" : "NOT_SERVING";
}
