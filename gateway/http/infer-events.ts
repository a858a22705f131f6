import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { inferReply } from "../../protocol/infer-reply.ts";
import type { InferenceRequest } from "../../protocol/inference.ts";
import { onlyOnward, type Progress } from "../../protocol/progress.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { clientError } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { httpMoments, traceSending } from "../trace-call.ts";
import { type Exchange, exchangeFields } from "./exchange.ts";

/** Proxies and clients give up on connections on which nothing comes. */
const heartbeatMilliseconds = 15_000;

/** True for a call that wants to be told what its request waits for: `Accept: text/event-stream`. */
export function wantsEvents({ headers }: IncomingMessage): boolean {
  return headers.accept?.includes("text/event-stream") ?? false;
}

/**
 * Answers an infer request with server-sent events: the states that it goes through as they come, and `result` with the
 * v2 response as JSON, or `error`. What is refused at once is an ordinary error with its status.
 */
export async function sendInferEvents(
  exchange: Exchange,
  request: InferenceRequest,
  plane: DataPlane,
  log: Logger,
): Promise<void> {
  const { outgoing, call, modelName, modelVersion } = exchange;
  const tell = onlyOnward((progress) => sendProgress(outgoing, progress));
  const endProgress = plane.progress(modelName, modelVersion, (progress) => {
    if (outgoing.headersSent) tell(progress);
  });
  let heartbeat: NodeJS.Timeout | undefined;
  try {
    const answer = plane.infer(request, call);
    await Promise.race([answer, nextTurn()]);
    outgoing.writeHead(200, [
      "Content-Type",
      "text/event-stream; charset=utf-8",
      "Cache-Control",
      "no-cache",
    ]);
    tell({ state: "queued" });
    heartbeat = setInterval(() => outgoing.write(": waiting\n\n"), heartbeatMilliseconds);
    const response = exchange.memory?.place(await answer) ?? (await answer);
    traceSending(call, httpMoments);
    sendEvent(outgoing, "result", inferReply(response, noBinaryOutputs).head);
  } catch (error) {
    if (!outgoing.headersSent) throw error;
    exchange.failed = true;
    const told = clientError(error, log, exchangeFields(exchange));
    call.trace?.failed(told);
    sendEvent(outgoing, "error", JSON.stringify({ error: told.message, code: told.code }));
  } finally {
    clearInterval(heartbeat);
    endProgress();
  }
  outgoing.end();
}

/** Events are text. */
const noBinaryOutputs: ReadonlySet<string> = new Set();

/** A client that reads slowly misses how far it was, and nothing piles up here. */
function sendProgress(outgoing: ServerResponse, progress: Progress): void {
  if (outgoing.writableNeedDrain) return;
  sendEvent(outgoing, progress.state, JSON.stringify(progressFields(progress)));
}

function progressFields({ fetchedBytes, totalBytes }: Progress): object {
  if (fetchedBytes === undefined || totalBytes === undefined) return {};
  const percent = totalBytes === 0 ? 100 : Math.floor((100 * fetchedBytes) / totalBytes);
  return { percent, fetched_bytes: fetchedBytes, total_bytes: totalBytes };
}

function sendEvent(outgoing: ServerResponse, event: string, json: string): void {
  outgoing.write(`event: ${event}\ndata: ${json}\n\n`);
}
