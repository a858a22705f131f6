import type { Job, Jobs } from "../../protocol/job.ts";
import { hasEnded } from "../../protocol/job.ts";
import { validRequest } from "../../protocol/valid-request.ts";
import { noMemoryForJobs } from "../shared-memory/no-memory-for-jobs.ts";
import { answerOf, endedJob, type JobQuestion } from "../async-jobs.ts";
import type { DataPlane } from "../data-plane.ts";
import { beginTrace, httpMoments, traceSending } from "../trace-call.ts";
import { errorJson, httpStatus } from "./error-status.ts";
import { type Exchange, type ExchangeAnswer, sendJson } from "./exchange.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import { parseInferBody, readInferBody, refuseDecoupled, sendResponse } from "./inference.ts";
import { type JobWish, jobWish, requestDigest } from "./jobs-headers.ts";
import { acceptedJson } from "./jobs-json.ts";
import type { HttpOptions } from "./options.ts";

/**
 * `POST …/infer` as a job: with `Prefer: respond-async` the answer is the job itself, with `Idempotency-Key` a request is
 * run once and answered as often as it is sent. All other calls get the ordinary answer.
 */
export function jobInferAnswer(
  plane: DataPlane,
  options: HttpOptions,
  ordinary: ExchangeAnswer,
): ExchangeAnswer {
  const { jobs } = plane;
  if (!jobs) return ordinary;
  return async (exchange) => {
    const wish = jobWish(exchange.incoming.headers);
    if (!wish) return ordinary(exchange);
    const body = await readInferBody(exchange, options.maxInputBytes);
    if (options.tracer?.resumes)
      beginTrace(options.tracer, exchange.call, exchange.modelName, httpMoments);
    const context = { plane, jobs, options, exchange, wish, body };
    const job = await submitted(context);
    if (job) await answer(context, job);
  };
}

interface Context {
  readonly plane: DataPlane;
  readonly jobs: Jobs;
  readonly options: HttpOptions;
  readonly exchange: Exchange;
  readonly wish: JobWish;
  readonly body: Buffer;
}

/** The job of the request, new or known by its key; undefined when the client has been told that there is none. */
async function submitted(context: Context): Promise<Job | undefined> {
  const { jobs, exchange, wish } = context;
  const { principal } = exchange.call;
  const id = jobs.newId(exchange.modelName);
  if (wish.key === undefined) return submit(context, id);
  const digest = digestOf(context);
  const claim = await jobs.claim(principal, wish.key, { id, digest });
  if (claim.digest !== digest) {
    const text = "Idempotency-Key: given with another request before, expected the same request";
    sendJson(exchange.outgoing, 422, errorJson(text));
    return undefined;
  }
  const known = await jobs.find(principal, claim.id);
  if (!known) return submit(context, claim.id);
  exchange.outgoing.setHeader("Idempotency-Replayed", "true");
  return isKept(known) ? known : jobs.replay(exchange.call, known.id);
}

async function submit({ plane, jobs, options, exchange, wish, body }: Context, id: string) {
  const { modelName, modelVersion, call } = exchange;
  const model = await plane.model(modelName, modelVersion);
  refuseDecoupled(model);
  exchange.memory = options.sharedMemory && noMemoryForJobs;
  const { request, binaryOutputs } = parseInferBody(model, body, exchange, options);
  const valid = validRequest(model, request);
  await call.permit?.charge(valid.batchSize);
  const { key, webhook } = wish;
  return jobs.submit(id, {
    principal: call.principal,
    request: valid,
    binaryOutputs,
    keyed: key !== undefined,
    traceparent: call.trace?.traceparent,
    ...(webhook !== undefined && { webhook }),
  });
}

async function answer({ jobs, exchange, wish }: Context, job: Job): Promise<void> {
  const { call, outgoing } = exchange;
  const question: JobQuestion = { principal: call.principal, id: job.id };
  const waitMilliseconds = wish.asyncAfterMilliseconds;
  const last = await patiently(jobs, question, call.signal, waitMilliseconds);
  const now = last ?? job;
  if (hasEnded(now) && waitMilliseconds !== 0) {
    const { response, binaryOutputs } = await answerOf(jobs, call.principal, now);
    traceSending(call, httpMoments);
    await sendResponse(exchange, response, binaryOutputs);
  } else if (waitMilliseconds !== undefined) {
    traceSending(call, httpMoments);
    outgoing.setHeader("Preference-Applied", "respond-async");
    outgoing.setHeader("Location", `/v2/jobs/${now.id}`);
    sendJson(outgoing, 202, JSON.stringify(acceptedJson(now, jobs.durability)));
  }
}

/** The job when it has ended, or when the time is over for which the client waits. */
async function patiently(
  jobs: Jobs,
  question: JobQuestion,
  hungUp: AbortSignal,
  milliseconds: number | undefined,
): Promise<Job | undefined> {
  if (milliseconds === 0) return undefined;
  if (milliseconds === undefined) return endedJob(jobs, question, hungUp);
  const over = AbortSignal.any([hungUp, AbortSignal.timeout(milliseconds)]);
  return endedJob(jobs, question, over);
}

/** A key stands for what its request has come to, unless that was nobody's mistake but ours. */
function isKept({ state, error }: Job): boolean {
  return state !== "failed" || !error || httpStatus[error.code] < 500;
}

function digestOf({ exchange, options, body }: Context): string {
  const { incoming, modelName, modelVersion } = exchange;
  const forwarded = forwardedHeaders(incoming.rawHeaders, options.headerForwardPattern);
  return requestDigest(incoming, ["POST", modelName, modelVersion], forwarded, body);
}
