import type { DataPlane } from "../data-plane.ts";
import { pathModel } from "./exchange.ts";
import type { HttpHandler } from "./exchange.ts";
import { addModelRoute, addRoute, jsonError } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** Whether the server lives, whether it and its models are ready: the status is the answer. */
export function addHealthRoutes(app: HttpRoutes, plane: DataPlane): void {
  addRoute(app, "/v2/health/live", { GET: () => healthAnswer(plane.live()) });
  addRoute(app, "/v2/health/ready", { GET: async () => healthAnswer(await plane.ready()) });
  addModelRoute(app, "/ready", { GET: modelReady(plane) });
}

function healthAnswer(good: boolean): Response {
  return new Response(null, { status: good ? 200 : 400, headers: { "Content-Length": "0" } });
}

function modelReady(plane: DataPlane): HttpHandler {
  return async (context) => {
    const { modelName, modelVersion } = pathModel(context);
    const ready = await plane.modelReady(modelName, modelVersion);
    return ready ? healthAnswer(true) : jsonError("Model version not ready", 400);
  };
}
