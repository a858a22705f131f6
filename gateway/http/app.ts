import { Hono } from "hono";
import { anonymous } from "../../protocol/call.ts";
import { clientError } from "../call-log.ts";
import type { DataPlane } from "../data-plane.ts";
import { noRestrictions } from "../restrictions.ts";
import { admitted } from "./admitted.ts";
import { errorHeaders, httpStatus } from "./error-status.ts";
import { exchangeHandler } from "./exchange.ts";
import type { HttpEnv } from "./exchange.ts";
import { inferLane, noLane } from "./fast-lane.ts";
import type { FastLane } from "./fast-lane.ts";
import { generateStreamHandler } from "./generate-stream.ts";
import { generateHandler } from "./generate.ts";
import { addHealthRoutes } from "./health.ts";
import { inferAnswer } from "./inference.ts";
import { jobInferAnswer } from "./jobs-infer.ts";
import { addJobRoutes } from "./jobs.ts";
import { addLoggingRoutes } from "./logging.ts";
import { addMetadataRoutes } from "./metadata.ts";
import type { HttpOptions } from "./options.ts";
import type { PlainCalls } from "./plain-connections.ts";
import { plainInferAnswer } from "./plain-infer.ts";
import { addRepositoryRoutes } from "./repository.ts";
import { addModelRoute, jsonError } from "./routes.ts";
import { addSharedMemoryRoutes } from "./shared-memory.ts";
import { addStatisticsRoutes } from "./statistics.ts";
import { addTraceRoutes } from "./trace-settings.ts";
import { addUploadRoutes } from "./uploads.ts";

/** What a server serves. */
export interface HttpApp {
  /** Every route. */
  readonly fetch: Hono<HttpEnv>["fetch"];
  /** Asked first. */
  readonly fastLane: FastLane;
  /** Answers what is so plain that node's own objects are not needed for it; undefined where every call must be looked at. */
  readonly plain: PlainCalls | undefined;
}

/** All that the server answers over HTTP: the v2 protocol and its extensions, in front of the data plane. */
export function createHttpApp(plane: DataPlane, options: HttpOptions): HttpApp {
  const infer = inferAnswer(plane, options);
  const app = new Hono<HttpEnv>();
  app.notFound(() => jsonError("Not Found", 404));
  const { log, restrictions = noRestrictions, access, audit } = options;
  // Handlers answer their own errors; what comes here is a call that may not be, or a mistake of ours.
  app.onError((cause, { req }) => {
    const error = clientError(cause, log, {
      transport: "http",
      method: `${req.method} ${req.path}`,
      requestId: undefined,
      model: "",
      version: "",
      principal: anonymous,
      receivedAt: performance.now(),
    });
    return jsonError(error.message, httpStatus[error.code], errorHeaders(error));
  });
  const routes = { app, restrictions, access, audit };
  addModelRoute(routes, "/infer", {
    POST: exchangeHandler(log, admitted(options, jobInferAnswer(plane, options, infer))),
  });
  addModelRoute(routes, "/generate", { POST: generateHandler(plane, options) });
  addModelRoute(routes, "/generate_stream", { POST: generateStreamHandler(plane, options) });
  addHealthRoutes(routes, plane, log);
  // Before the metadata of a model that would be named "stats".
  addStatisticsRoutes(routes, plane, log);
  addMetadataRoutes(routes, plane, log);
  addRepositoryRoutes(routes, plane, options);
  addUploadRoutes(routes, plane, options);
  if (plane.jobs) addJobRoutes(routes, plane.jobs, options);
  addLoggingRoutes(routes, options);
  addTraceRoutes(routes, plane, options);
  addSharedMemoryRoutes(routes, options);
  // Who is restricted is asked on the router's way only.
  const restricted = restrictions.has("inference");
  const fastLane = restricted ? noLane : inferLane(admitted(options, infer), options);
  const { maxInputBytes, headerForwardPattern } = options;
  const plain =
    restricted || headerForwardPattern
      ? undefined
      : { answer: plainInferAnswer(plane, options), maxInputBytes };
  return { fetch: app.fetch, fastLane, plain };
}
