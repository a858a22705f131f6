import { type ServerInterceptor, ServerInterceptingCall, status } from "@grpc/grpc-js";
import { type GrpcMethodName, grpcCategories } from "../api-category.ts";
import { type Restrictions, unlocks } from "../restrictions.ts";

const keyPrefix = "triton-grpc-protocol-";

/** Lets calls of restricted methods pass only with the metadata that opens them. */
export function restrictCalls(restrictions: Restrictions): ServerInterceptor {
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
            call.sendStatus({
              code: status.UNAVAILABLE,
              details: `This protocol is restricted, expecting header '${header}'`,
            });
          },
        }),
    });
}

function isMethod(name: string): name is GrpcMethodName {
  return Object.hasOwn(grpcCategories, name);
}
