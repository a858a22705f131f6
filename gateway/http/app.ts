import { Hono } from "hono";
import { clientError } from "../client-error.ts";
import type { DataPlane } from "../data-plane.ts";
import { httpStatus } from "./error-status.ts";
import type { HttpEnv } from "./exchange.ts";
import { generateStreamHandler } from "./generate-stream.ts";
import { generateHandler } from "./generate.ts";
import { addHealthRoutes } from "./health.ts";
import { inferHandler } from "./inference.ts";
import { addLoggingRoutes } from "./logging.ts";
import { addMetadataRoutes } from "./metadata.ts";
import type { HttpOptions } from "./options.ts";
import { addRepositoryRoutes } from "./repository.ts";
import { addModelRoute, jsonError } from "./routes.ts";
import type { HttpApp } from "./routes.ts";
import { addStatisticsRoutes } from "./statistics.ts";

/** All that the server answers over HTTP: the v2 protocol and its extensions, in front of the data plane. */
export function createHttpApp(plane: DataPlane, options: HttpOptions): HttpApp {
  const app = new Hono<HttpEnv>();
  app.notFound(() => jsonError("Not Found", 404));
  app.onError((cause) => {
    const error = clientError(cause, options.log);
    return jsonError(error.message, httpStatus[error.code]);
  });
  addModelRoute(app, "/infer", { POST: inferHandler(plane, options) });
  addModelRoute(app, "/generate", { POST: generateHandler(plane, options) });
  addModelRoute(app, "/generate_stream", { POST: generateStreamHandler(plane, options) });
  addHealthRoutes(app, plane);
  // Before the metadata of a model that would be named "stats".
  addStatisticsRoutes(app, plane);
  addMetadataRoutes(app, plane);
  addRepositoryRoutes(app, plane, options);
  addLoggingRoutes(app, options);
  return app;
}
