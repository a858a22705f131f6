import { Hono } from "hono";
import { clientError } from "../client-error.ts";
import type { DataPlane } from "../data-plane.ts";
import { httpStatus } from "./error-status.ts";
import { exchangeHandler } from "./exchange.ts";
import type { HttpEnv } from "./exchange.ts";
import { inferLane } from "./fast-lane.ts";
import type { FastLane } from "./fast-lane.ts";
import { generateStreamHandler } from "./generate-stream.ts";
import { generateHandler } from "./generate.ts";
import { addHealthRoutes } from "./health.ts";
import { inferAnswer } from "./inference.ts";
import { addLoggingRoutes } from "./logging.ts";
import { addMetadataRoutes } from "./metadata.ts";
import type { HttpOptions } from "./options.ts";
import { addRepositoryRoutes } from "./repository.ts";
import { addModelRoute, jsonError } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";
import { addStatisticsRoutes } from "./statistics.ts";

/** What a server serves. */
export interface HttpApp {
  /** Every route. */
  readonly fetch: HttpRoutes["fetch"];
  /** Asked first. */
  readonly fastLane: FastLane;
}

/** All that the server answers over HTTP: the v2 protocol and its extensions, in front of the data plane. */
export function createHttpApp(plane: DataPlane, options: HttpOptions): HttpApp {
  const infer = inferAnswer(plane, options);
  const app = new Hono<HttpEnv>();
  app.notFound(() => jsonError("Not Found", 404));
  app.onError((cause) => {
    const error = clientError(cause, options.log);
    return jsonError(error.message, httpStatus[error.code]);
  });
  addModelRoute(app, "/infer", { POST: exchangeHandler(options.log, infer) });
  addModelRoute(app, "/generate", { POST: generateHandler(plane, options) });
  addModelRoute(app, "/generate_stream", { POST: generateStreamHandler(plane, options) });
  addHealthRoutes(app, plane);
  // Before the metadata of a model that would be named "stats".
  addStatisticsRoutes(app, plane);
  addMetadataRoutes(app, plane);
  addRepositoryRoutes(app, plane, options);
  addLoggingRoutes(app, options);
  return { fetch: app.fetch, fastLane: inferLane(infer, options) };
}
