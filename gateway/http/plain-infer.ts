import type { InferenceError } from "../../protocol/error.ts";
import { inferReply } from "../../protocol/infer-reply.ts";
import { noParameters } from "../../protocol/parameters.ts";
import { type CallFields, clientError, logAnswered } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { serverTiming } from "../server-timing.ts";
import { errorJson, httpStatus, retryHeaders } from "./error-status.ts";
import { parseBody, refuseDecoupled } from "./inference.ts";
import type { HttpOptions } from "./options.ts";
import type { AnswerPlain, PlainReply } from "./plain-connection.ts";
import { replyBody, replyHeaders } from "./reply-body.ts";

/** Answers infer calls whose heads ask for nothing special: what such a call wants stands in its body alone. */
export function plainInferAnswer(plane: DataPlane, { log }: HttpOptions): AnswerPlain {
  return async (head, body, call) => {
    const { path, modelName: model, modelVersion: version } = head;
    let requestId: string | undefined;
    const fields = (): CallFields => ({
      transport: "http",
      method: `POST ${path}`,
      requestId,
      model,
      version,
      receivedAt: call.receivedAt,
    });
    try {
      const found = plane.model(model, version);
      const served = found instanceof Promise ? await found : found;
      refuseDecoupled(served);
      const target = { modelName: model, modelVersion: version, forwarded: noParameters };
      const { request, binaryOutputs } = parseBody(served, body, head.jsonLength, target);
      requestId = request.id;
      const response = await plane.infer(request, call);
      const reply = replyBody(inferReply(response, binaryOutputs));
      if (log.verboseLevel > 0) logAnswered(log, fields());
      const timing = serverTiming(call);
      const headers = replyHeaders(reply);
      const all = timing === undefined ? headers : [...headers, "Server-Timing", timing];
      return { status: 200, headers: all, body: reply };
    } catch (error) {
      return refusalReply(clientError(error, log, fields()));
    }
  };
}

function refusalReply(error: InferenceError): PlainReply {
  return {
    status: httpStatus[error.code],
    headers: ["Content-Type", "application/json", ...retryHeaders(error)],
    body: replyBody({ head: errorJson(error.message), tail: [] }),
  };
}
