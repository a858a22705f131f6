import type { handleUnaryCall } from "@grpc/grpc-js";
import type { Type } from "protobufjs";
import { messages } from "../../repository/proto-files.ts";
import { anonymousCaller, type Caller } from "../../auth/caller.ts";
import { admit } from "../access.ts";
import type { Change } from "../audit-trail.ts";
import { type CallFields, clientError, logAnswered } from "../call-log.ts";
import { changeBy } from "./audited.ts";
import { methodNeed } from "../policy.ts";
import { callFields, credentialsIn } from "./call-context.ts";
import { callStatus } from "./error-status.ts";
import type { GrpcOptions } from "./options.ts";
import { malformed } from "./wire-reader.ts";

/** What a message holds by its fields' names in camelCase; the `.proto` files say of what types. */
export type Fields = ReturnType<Type["toObject"]>;

/** Answers one kind of request. */
export type Answer = (
  request: Fields,
  caller: Caller,
  change: Change | undefined,
) => object | Promise<object>;

/**
 * A method off the hot path: its messages go through protobufjs' reflection.
 * @param name of its messages without `Request` and `Response`, with the package unless it is `inference`.
 */
export function unaryMethod(
  name: string,
  answer: Answer,
  { access, audit, log }: Pick<GrpcOptions, "access" | "audit" | "log">,
): handleUnaryCall<Buffer, Buffer> {
  const request = messages().type(`${name}Request`);
  const response = messages().type(`${name}Response`);
  return async (unary, respond) => {
    const receivedAt = performance.now();
    let caller: Caller | undefined;
    let change: Change | undefined;
    let fields: Fields | undefined;
    const told = (): CallFields =>
      callFields(
        unary.getPath(),
        { principal: caller ?? anonymousCaller, receivedAt },
        fields && namedIn(fields),
      );
    try {
      fields = decode(request, unary.request);
      const subject = namedIn(fields).modelName ?? "";
      if (!onlyAsks(fields)) change = changeBy(unary, audit, unary.getPath(), subject);
      if (access) {
        const wanted = { need: methodNeed(unary.getPath()), model: subject };
        caller = await admit(access, credentialsIn(unary.metadata), wanted);
      }
      const answered = await answer(fields, caller ?? anonymousCaller, change);
      change?.end(caller);
      respond(null, encode(response, answered));
      if (log.verboseLevel > 0) logAnswered(log, told());
    } catch (error) {
      change?.end(caller, error);
      respond(callStatus(clientError(error, log, told())));
    }
  };
}

/** The model that a message is about; the protocol has two spellings. */
function namedIn({ name, version, modelName, modelVersion }: Fields) {
  return { id: "", modelName: modelName ?? name, modelVersion: modelVersion ?? version };
}

/** True for a message with room for settings and none of them. */
function onlyAsks({ settings }: Fields): boolean {
  return settings !== undefined && Object.keys(settings).length === 0;
}

/** The fields of a message, with defaults where it leaves them out. */
function decode(type: Type, bytes: Buffer): Fields {
  try {
    return type.toObject(type.decode(bytes), { defaults: true, longs: Number });
  } catch {
    throw malformed();
  }
}

export function encode(type: Type, fields: object): Buffer {
  const bytes = type.encode(type.fromObject(fields)).finish();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
