import { seenBy } from "../../auth/caller.ts";
import { statisticsToJson } from "../../protocol/statistics-json.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { DataPlane } from "../data-plane.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import { addModelRoute, addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** What has been counted since the models were loaded: of all of them, of one, of one version. */
export function addStatisticsRoutes(routes: HttpRoutes, plane: DataPlane, log: Logger): void {
  const statistics = exchangeHandler(log, async (exchange) => {
    const { outgoing, caller, modelName, modelVersion } = exchange;
    const models = seenBy(caller, await plane.statistics(modelName, modelVersion));
    sendJson(outgoing, 200, JSON.stringify({ model_stats: models.map(statisticsToJson) }));
  });
  addRoute(routes, "/v2/models/stats", { GET: statistics });
  addModelRoute(routes, "/stats", { GET: statistics });
}
