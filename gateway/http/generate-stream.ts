import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { generateReply } from "../../protocol/generate-json.ts";
import { clientError } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { httpMoments, traceSending } from "../trace-call.ts";
import { admitted } from "./admitted.ts";
import { errorJson } from "./error-status.ts";
import { exchangeFields, exchangeHandler } from "./exchange.ts";
import type { HttpHandler } from "./exchange.ts";
import { readGenerate } from "./generate.ts";
import type { HttpOptions } from "./options.ts";

/**
 * `POST …/generate_stream`: as many responses as the model gives, each a server-sent event as soon as it is there.
 * An error before the first is an ordinary error; one after it is an event, because the status has been sent.
 */
export function generateStreamHandler(plane: DataPlane, options: HttpOptions): HttpHandler {
  const answer = admitted(options, async (exchange) => {
    const { outgoing, call } = exchange;
    const request = await readGenerate(plane, options, exchange);
    exchange.requestId = request.id;
    try {
      for await (const { response } of plane.stream(request, call)) {
        if (!outgoing.headersSent) traceSending(call, httpMoments);
        await sendEvent(outgoing, generateReply(response));
      }
    } catch (error) {
      if (!outgoing.headersSent) throw error;
      exchange.failed = true;
      const told = clientError(error, options.log, exchangeFields(exchange));
      call.trace?.failed(told);
      await sendEvent(outgoing, errorJson(told.message));
    }
    begin(outgoing);
    outgoing.end();
  });
  return exchangeHandler(options.log, answer);
}

function begin(outgoing: ServerResponse): void {
  if (outgoing.headersSent) return;
  outgoing.writeHead(200, [
    "Content-Type",
    "text/event-stream; charset=utf-8",
    "Cache-Control",
    "no-cache",
  ]);
}

/** Waits for a client that reads slowly: the model then waits, too, and nothing piles up here. */
async function sendEvent(outgoing: ServerResponse, json: string): Promise<void> {
  begin(outgoing);
  if (outgoing.write(`data: ${json}\n\n`) || outgoing.destroyed) return;
  const settled = new AbortController();
  const { signal } = settled;
  await Promise.race([once(outgoing, "drain", { signal }), once(outgoing, "close", { signal })]);
  settled.abort();
}
