import { type ServerInterceptor, ServerInterceptingCall, status } from "@grpc/grpc-js";
import { type GrpcMethodName, grpcCategories } from "../api-category.ts";
import type { AuditTrail } from "../audit-trail.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { type Restrictions, unlocks } from "../restrictions.ts";
import { changeBy } from "./audited.ts";

const keyPrefix = "triton-grpc-protocol-";

/** Lets calls of restricted methods pass only with the metadata that opens them. */
export function restrictCalls(restrictions: Restrictions, audit?: AuditTrail): ServerInterceptor {
  return ({ path }, call) =>
    new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, pass) {
            const name = path.slice(path.lastIndexOf("/") + 1);
            const restriction = isMethod(name) && restrictions.get(grpcCategories[name]);
            if (!restriction) return pass(metadata);
            const header = keyPrefix + restriction.key;
            // Header names travel in lower case, however the restriction spells them.
            const given = metadata.get(header).map(String);
            if (given.some((value) => unlocks(value, restriction))) return pass(metadata);
            const details = `This protocol is restricted, expecting header '${header}'`;
            const peer = { metadata, getPeer: () => call.getPeer() };
            const refusal = new InferenceError(StatusCode.PermissionDenied, details);
            changeBy(peer, audit, path, "")?.end(undefined, refusal);
            call.sendStatus({ code: status.UNAVAILABLE, details });
          },
        }),
    });
}

function isMethod(name: string): name is GrpcMethodName {
  return Object.hasOwn(grpcCategories, name);
}
