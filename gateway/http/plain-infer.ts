import { anonymousCaller } from "../../auth/caller.ts";
import type { Call } from "../../protocol/call.ts";
import type { InferenceError } from "../../protocol/error.ts";
import { inferReply } from "../../protocol/infer-reply.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { admit } from "../access.ts";
import type { Permit } from "../admission.ts";
import { type CallFields, clientError, logAnswered } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { serverTiming } from "../server-timing.ts";
import { beginTrace, httpMoments, traceFailure, traceSending } from "../trace-call.ts";
import { errorHeaders, errorJson, httpStatus } from "./error-status.ts";
import { parseBody, refuseDecoupled } from "./inference.ts";
import type { HttpOptions } from "./options.ts";
import type { PlainHead } from "./plain-head.ts";
import type { AnswerPlain, PlainReply } from "./plain-connection.ts";
import { replyBody, replyHeaders } from "./reply-body.ts";

/** Answers infer calls whose heads ask for nothing special: what such a call wants stands in its body alone. */
export function plainInferAnswer(plane: DataPlane, options: HttpOptions): AnswerPlain {
  const { log, sharedMemory, tracer } = options;
  return async (head, body, call) => {
    const { path, modelName: model, modelVersion: version } = head;
    let requestId: string | undefined;
    let permit: Permit | undefined;
    const memory = sharedMemory?.open();
    const fields = (): CallFields => ({
      transport: "http",
      method: `POST ${path}`,
      requestId,
      model,
      version,
      principal: call.principal,
      receivedAt: call.receivedAt,
    });
    try {
      permit = await letIn(options, head, call);
      const found = plane.model(model, version);
      const served = found instanceof Promise ? await found : found;
      refuseDecoupled(served);
      beginTrace(tracer, call, model, httpMoments);
      const target = { modelName: model, modelVersion: version, forwarded: noParameters, memory };
      const { request, binaryOutputs } = parseBody(served, body, head.jsonLength, target);
      requestId = request.id;
      const response = await plane.infer(request, call);
      const left = memory ? memory.place(response) : response;
      const reply = replyBody(inferReply(left, binaryOutputs));
      if (log.verboseLevel > 0) logAnswered(log, fields());
      const timing = serverTiming(call);
      const headers = withQuota(replyHeaders(reply), permit);
      const all = timing === undefined ? headers : [...headers, "Server-Timing", timing];
      traceSending(call, httpMoments);
      return { status: 200, headers: all, body: reply };
    } catch (cause) {
      const error = clientError(cause, log, fields());
      traceFailure(call, error, httpMoments);
      return refusalReply(error, permit);
    } finally {
      permit?.release();
      memory?.close();
    }
  };
}

/** Finds out who calls, and lets them in. */
async function letIn(
  { access, admission }: HttpOptions,
  head: PlainHead,
  call: Call,
): Promise<Permit | undefined> {
  const { modelName: model, bodyLength: bytes } = head;
  let caller = anonymousCaller;
  if (access) {
    const known = admit(access, head, { need: "infer", model });
    caller = known instanceof Promise ? await known : known;
    call.principal = caller;
  }
  return admission?.enter({ caller, call, model, bytes });
}

function refusalReply(error: InferenceError, permit: Permit | undefined): PlainReply {
  const told = ["Content-Type", "application/json", ...Object.entries(errorHeaders(error)).flat()];
  return {
    status: httpStatus[error.code],
    headers: error.quota ? told : withQuota(told, permit),
    body: replyBody({ head: errorJson(error.message), tail: [] }),
  };
}

function withQuota(headers: readonly string[], permit: Permit | undefined): readonly string[] {
  const quota = permit?.quota;
  return quota ? [...headers, "RateLimit-Policy", quota.policy, "RateLimit", quota.left] : headers;
}
