import { type Metadata, type ServerInterceptor, ServerInterceptingCall } from "@grpc/grpc-js";
import { type Access, admit } from "../access.ts";
import { clientError } from "../call-log.ts";
import { methodNeed } from "../policy.ts";
import { changeBy } from "./audited.ts";
import { callFields, callOf, credentialsIn } from "./call-context.ts";
import { callStatus } from "./error-status.ts";
import type { GrpcOptions } from "./options.ts";

/**
 * Looks who calls before a byte of a message is taken, so that strangers have nothing decompressed or parsed. Which model a
 * call is about stands in its message: whoever reads that looks again.
 */
export function guardCalls(
  access: Access,
  { log, audit }: Pick<GrpcOptions, "log" | "audit">,
): ServerInterceptor {
  return ({ path }, call) => {
    const refuse = (metadata: Metadata, cause: unknown): void => {
      const peer = { metadata, getPeer: () => call.getPeer() };
      changeBy(peer, audit, path, "")?.end(undefined, cause);
      call.sendStatus(callStatus(clientError(cause, log, callFields(path, callOf(metadata)))));
    };
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, pass) {
            const admitted = mayBegin(access, metadata, path);
            void admitted.then(
              () => pass(metadata),
              (cause: unknown) => refuse(metadata, cause),
            );
          },
        }),
    });
  };
}

async function mayBegin(access: Access, metadata: Metadata, path: string): Promise<void> {
  await admit(access, credentialsIn(metadata), { need: methodNeed(path), model: "" });
}
