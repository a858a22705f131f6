import type { IncomingMessage, ServerResponse } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context, Handler } from "hono";
import { anonymousCaller, type Caller } from "../../auth/caller.ts";
import { Call } from "../../protocol/call.ts";
import type { RequestMemory } from "../../protocol/shared-memory.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Change } from "../audit-trail.ts";
import { type CallFields, clientError, logAnswered } from "../call-log.ts";
import { endTrace, httpMoments, traceFailure } from "../trace-call.ts";
import { errorHeaders, errorJson, httpStatus } from "./error-status.ts";

/** The environment of all handlers: node's own request and response, who calls where that is asked, and what is changed. */
export interface HttpEnv {
  readonly Bindings: HttpBindings;
  readonly Variables: { readonly caller?: Caller; readonly change?: Change };
}
export type HttpContext = Context<HttpEnv>;
export type HttpHandler = Handler<HttpEnv>;

/** One call over HTTP on node's own objects: bodies and answers do not pass through web streams, which cost more than all else. */
export interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly caller: Caller;
  readonly call: Call;
  readonly modelName: string;
  /** "" where the path has none. */
  readonly modelVersion: string;
  /** For calls that change something. */
  readonly change?: Change | undefined;
  /** Set as soon as the request has been read, for the log. */
  requestId: string | undefined;
  /** Set by who lets the request use shared memory. */
  memory: RequestMemory | undefined;
  /** Set by who has told the client and the log of an error amid the answer. */
  failed: boolean;
}

/** What an exchange begins with. */
export type ExchangeParts = Omit<Exchange, "call" | "requestId" | "memory" | "failed">;

/** Answers on node's response itself, and may throw until it has begun to. */
export type ExchangeAnswer = (exchange: Exchange) => Promise<void>;

/** Makes a handler for the router of a function that needs none. */
export function exchangeHandler(log: Logger, answer: ExchangeAnswer): HttpHandler {
  return (context) => {
    const { incoming, outgoing } = context.env;
    const caller = context.get("caller") ?? anonymousCaller;
    const change = context.get("change");
    answerExchange({ incoming, outgoing, caller, change, ...pathModel(context) }, answer, log);
    return RESPONSE_ALREADY_SENT;
  };
}

/** Lets a function answer one call, and answers with the error that it throws instead. */
export function answerExchange(parts: ExchangeParts, answer: ExchangeAnswer, log: Logger): void {
  const { incoming, outgoing, caller } = parts;
  const { traceparent } = incoming.headers;
  const parent = typeof traceparent === "string" ? traceparent : undefined;
  const call = new Call(caller, performance.now(), parent);
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) call.cancel();
  });
  const exchange: Exchange = {
    ...parts,
    call,
    requestId: undefined,
    memory: undefined,
    failed: false,
  };
  void settle(exchange, answer, log);
}

async function settle(exchange: Exchange, answer: ExchangeAnswer, log: Logger): Promise<void> {
  try {
    await answer(exchange);
    exchange.change?.end(exchange.caller);
    if (log.verboseLevel > 0 && !exchange.failed) logAnswered(log, exchangeFields(exchange));
  } catch (error) {
    exchange.change?.end(exchange.caller, error);
    sendError(exchange, error, log);
  }
  endTrace(exchange.call, httpMoments);
}

/** What the log tells of the call. */
export function exchangeFields(exchange: Exchange): CallFields {
  const { incoming, call, requestId, modelName, modelVersion } = exchange;
  return {
    transport: "http",
    method: `${incoming.method} ${incoming.url}`,
    requestId,
    model: modelName,
    version: modelVersion,
    principal: call.principal,
    receivedAt: call.receivedAt,
  };
}

/** Answers with JSON text. @param more headers, names and values by turns */
export function sendJson(
  outgoing: ServerResponse,
  status: number,
  json: string,
  more: readonly string[] = [],
): void {
  outgoing.writeHead(status, [
    "Content-Type",
    "application/json",
    "Content-Length",
    String(Buffer.byteLength(json)),
    ...more,
  ]);
  outgoing.end(json);
}

/** The model that the path names. */
function pathModel(context: HttpContext): { modelName: string; modelVersion: string } {
  return {
    modelName: context.req.param("model") ?? "",
    modelVersion: context.req.param("version") ?? "",
  };
}

/** Answers with an error; an answer that has already begun is cut off, so that nobody takes it for whole. */
function sendError(exchange: Exchange, cause: unknown, log: Logger): void {
  const { outgoing } = exchange;
  const error = clientError(cause, log, exchangeFields(exchange));
  traceFailure(exchange.call, error, httpMoments);
  if (outgoing.headersSent) outgoing.destroy();
  else if (!outgoing.destroyed) {
    const headers = Object.entries(errorHeaders(error)).flat();
    sendJson(outgoing, httpStatus[error.code], errorJson(error.message), headers);
  }
}
