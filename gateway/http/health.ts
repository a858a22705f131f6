import type { ServerResponse } from "node:http";
import type { Logger } from "../../telemetry/logger.ts";
import type { DataPlane } from "../data-plane.ts";
import { errorJson } from "./error-status.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import { addModelRoute, addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** Whether the server lives, whether it and its models are ready: the status is the answer. */
export function addHealthRoutes(routes: HttpRoutes, plane: DataPlane, log: Logger): void {
  const live = exchangeHandler(log, async ({ outgoing }) => sendHealth(outgoing, plane.live()));
  const ready = exchangeHandler(log, async ({ outgoing }) =>
    sendHealth(outgoing, await plane.ready()),
  );
  const modelReady = exchangeHandler(log, async ({ outgoing, modelName, modelVersion }) => {
    if (await plane.modelReady(modelName, modelVersion)) sendHealth(outgoing, true);
    else sendJson(outgoing, 400, errorJson("Model version not ready"));
  });
  addRoute(routes, "/v2/health/live", { GET: live });
  addRoute(routes, "/v2/health/ready", { GET: ready });
  addModelRoute(routes, "/ready", { GET: modelReady });
}

function sendHealth(outgoing: ServerResponse, good: boolean): void {
  outgoing.writeHead(good ? 200 : 400, ["Content-Length", "0"]).end();
}
