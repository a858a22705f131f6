import { InferenceError, invalidArgument, StatusCode } from "../../protocol/error.ts";
import { hasEnded, type Job, type Jobs, jobStates, type JobState } from "../../protocol/job.ts";
import { checked } from "../access.ts";
import { answerOf } from "../async-jobs.ts";
import { admitted } from "./admitted.ts";
import { errorJson } from "./error-status.ts";
import { type Exchange, exchangeHandler, type HttpHandler, sendJson } from "./exchange.ts";
import { sendResponse } from "./inference.ts";
import { sendJobEvents } from "./jobs-events.ts";
import { deliveryJson, jobJson } from "./jobs-json.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute, type HttpRoutes } from "./routes.ts";

/** `/v2/jobs`: what has become of durable requests, for those who sent them. */
export function addJobRoutes(routes: HttpRoutes, jobs: Jobs, options: HttpOptions): void {
  const { log } = options;
  const handler = (answer: (exchange: Exchange, jobs: Jobs) => Promise<void>): HttpHandler =>
    exchangeHandler(log, (exchange) => answer(exchange, jobs));
  addRoute(routes, "/v2/jobs", { GET: handler(list) });
  addRoute(routes, "/v2/jobs/:job", { GET: handler(show), DELETE: handler(cancel) });
  addRoute(routes, "/v2/jobs/:job/result", { GET: handler(result) });
  addRoute(routes, "/v2/jobs/:job/deliveries", { GET: handler(deliveries) });
  const again = admitted(options, (exchange) => replay(exchange, jobs));
  addRoute(routes, "/v2/jobs/:job/replay", { POST: exchangeHandler(log, again) });
  addRoute(routes, "/v2/jobs/:job/events", {
    GET: handler(async (exchange) =>
      sendJobEvents(exchange, jobs, (await found(exchange, jobs)).id),
    ),
  });
}

const mostJobs = 100;
const defaultJobs = 20;

async function list({ incoming, outgoing, call }: Exchange, jobs: Jobs): Promise<void> {
  const { searchParams } = urlOf(incoming.url);
  const state = stateOf(searchParams.get("state"));
  const limit = limitOf(searchParams.get("limit"));
  const page = await jobs.list(call.principal, limit, searchParams.get("cursor") ?? undefined);
  const wanted = page.jobs.filter((job) => state === undefined || job.state === state);
  const next = page.cursor === undefined ? {} : { next_cursor: page.cursor };
  sendJson(outgoing, 200, JSON.stringify({ jobs: wanted.map(jobJson), ...next }));
}

async function show(exchange: Exchange, jobs: Jobs): Promise<void> {
  sendJob(exchange, await found(exchange, jobs));
}

async function result(exchange: Exchange, jobs: Jobs): Promise<void> {
  const job = await found(exchange, jobs);
  if (!hasEnded(job)) {
    const text = `job '${job.id}' is ${job.state}: it has no result yet`;
    sendJson(exchange.outgoing, 409, errorJson(text), ["Retry-After", "1"]);
    return;
  }
  const { response, binaryOutputs } = await answerOf(jobs, exchange.call.principal, job);
  await sendResponse(exchange, response, binaryOutputs);
}

async function deliveries(exchange: Exchange, jobs: Jobs): Promise<void> {
  const { id } = await found(exchange, jobs);
  const attempts = await jobs.deliveries(exchange.call.principal, id);
  const json = JSON.stringify({ deliveries: attempts.map(deliveryJson) });
  sendJson(exchange.outgoing, 200, json);
}

async function cancel(exchange: Exchange, jobs: Jobs): Promise<void> {
  const { id } = await found(exchange, jobs);
  sendJob(exchange, existing(await jobs.cancel(exchange.call.principal, id), id));
}

async function replay(exchange: Exchange, jobs: Jobs): Promise<void> {
  const { id, state, modelName: model } = await found(exchange, jobs);
  // Keys change: who may not send it to the model any more may not have it run again.
  checked(exchange.caller, { need: "infer", model });
  if (state !== "failed") {
    const text = `job '${id}' is ${state}, expected one that has failed`;
    sendJson(exchange.outgoing, 409, errorJson(text));
    return;
  }
  sendJob(exchange, existing(await jobs.replay(exchange.call, id), id), 202);
}

/** The job that the path names. */
async function found({ incoming, call }: Exchange, jobs: Jobs): Promise<Job> {
  const [, , , id = ""] = urlOf(incoming.url).pathname.split("/");
  return existing(await jobs.find(call.principal, id), id);
}

function existing(job: Job | undefined, id: string): Job {
  if (job) return job;
  throw new InferenceError(StatusCode.NotFound, `job '${id}' is not found`);
}

function sendJob({ outgoing }: Exchange, job: Job, status = 200): void {
  sendJson(outgoing, status, JSON.stringify(jobJson(job)));
}

function urlOf(target = ""): URL {
  return new URL(target, "http://host");
}

function stateOf(text: string | null): JobState | undefined {
  if (text === null) return undefined;
  const state = jobStates.find((one) => one === text);
  if (state) return state;
  throw invalidArgument(`state: given '${text}', expected one of ${jobStates.join(", ")}`);
}

function limitOf(text: string | null): number {
  if (text === null) return defaultJobs;
  const limit = /^\d{1,4}$/u.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= mostJobs) return limit;
  throw invalidArgument(`limit: given '${text}', expected a whole number from 1 to ${mostJobs}`);
}
