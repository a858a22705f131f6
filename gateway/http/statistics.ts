import { statisticsToJson } from "../../protocol/statistics-json.ts";
import type { DataPlane } from "../data-plane.ts";
import { pathModel } from "./exchange.ts";
import type { HttpHandler } from "./exchange.ts";
import { addModelRoute, addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** What has been counted since the models were loaded: of all of them, of one, of one version. */
export function addStatisticsRoutes(app: HttpRoutes, plane: DataPlane): void {
  const statistics: HttpHandler = async (context) => {
    const { modelName, modelVersion } = pathModel(context);
    const models = await plane.statistics(modelName, modelVersion);
    return context.json({ model_stats: models.map(statisticsToJson) });
  };
  addRoute(app, "/v2/models/stats", { GET: statistics });
  addModelRoute(app, "/stats", { GET: statistics });
}
