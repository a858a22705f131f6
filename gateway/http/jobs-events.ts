import { hasEnded, type Job, type Jobs } from "../../protocol/job.ts";
import { watchJob } from "../async-jobs.ts";
import type { Exchange } from "./exchange.ts";
import { jobJson } from "./jobs-json.ts";

/** Proxies and clients give up on connections on which nothing comes. */
const heartbeatMilliseconds = 15_000;

/**
 * Answers with server-sent events: the job as it is, and whenever that changes, until it has ended. The event's name is the
 * state; its id is that of the change, so that `Last-Event-ID` leaves out what the client has seen.
 */
export async function sendJobEvents(exchange: Exchange, jobs: Jobs, id: string): Promise<void> {
  const { incoming, outgoing, call } = exchange;
  const seen = String(incoming.headers["last-event-id"] ?? "");
  const job = await jobs.find(call.principal, id);
  if (job && hasEnded(job) && seen === String(job.changes)) {
    // Tells browsers that there is nothing to come back for.
    outgoing.writeHead(204).end();
    return;
  }
  outgoing.writeHead(200, [
    "Content-Type",
    "text/event-stream; charset=utf-8",
    "Cache-Control",
    "no-cache",
  ]);
  outgoing.flushHeaders();
  const heartbeat = setInterval(() => outgoing.write(": waiting\n\n"), heartbeatMilliseconds);
  const over = AbortSignal.any([call.signal, jobs.closing]);
  try {
    for await (const now of watchJob(jobs, { principal: call.principal, id }, over)) {
      if (outgoing.writableNeedDrain && !hasEnded(now)) continue;
      if (String(now.changes) !== seen || now.percent !== undefined) outgoing.write(eventOf(now));
    }
  } finally {
    clearInterval(heartbeat);
  }
  outgoing.end();
}

function eventOf(job: Job): string {
  return `id: ${job.changes}\nevent: ${job.state}\ndata: ${JSON.stringify(jobJson(job))}\n\n`;
}
