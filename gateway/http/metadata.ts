import { configToJson } from "../../repository/config-json.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { DataPlane } from "../data-plane.ts";
import { type Exchange, exchangeHandler, type HttpHandler, sendJson } from "./exchange.ts";
import { addModelRoute, addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** What the server and its models are: metadata and configs. */
export function addMetadataRoutes(routes: HttpRoutes, plane: DataPlane, log: Logger): void {
  const show = (describe: (exchange: Exchange) => Promise<object>): HttpHandler =>
    exchangeHandler(log, async (exchange) =>
      sendJson(exchange.outgoing, 200, JSON.stringify(await describe(exchange))),
    );
  const server = show(async () => plane.server);
  const metadata = show(({ modelName, modelVersion }) => plane.metadata(modelName, modelVersion));
  const config = show(async ({ modelName, modelVersion }) =>
    configToJson(await plane.config(modelName, modelVersion)),
  );
  addRoute(routes, "/v2", { GET: server });
  addModelRoute(routes, "", { GET: metadata });
  addModelRoute(routes, "/config", { GET: config });
}
