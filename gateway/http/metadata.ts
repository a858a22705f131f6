import { configToJson } from "../../repository/config-json.ts";
import { keepMetadata } from "../../protocol/edge-cache.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { httpCategories, type HttpPath } from "../api-category.ts";
import type { DataPlane } from "../data-plane.ts";
import { mayKeep } from "./edge-call.ts";
import { type Exchange, exchangeHandler, type HttpHandler, sendJson } from "./exchange.ts";
import { addModelRoute, addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** What the server and its models are: metadata and configs. */
export function addMetadataRoutes(routes: HttpRoutes, plane: DataPlane, log: Logger): void {
  const show = (
    path: HttpPath,
    describe: (exchange: Exchange) => Promise<object>,
    digest: (exchange: Exchange) => string | undefined = () => undefined,
  ): HttpHandler => {
    // Whoever answers in our place does not ask for the header of a restricted API.
    const open = !routes.restrictions.has(httpCategories[path]);
    return exchangeHandler(log, async (exchange) => {
      const json = JSON.stringify(await describe(exchange));
      if (open) mayKeep(exchange, digest(exchange) ?? keepMetadata);
      sendJson(exchange.outgoing, 200, json);
    });
  };
  const server = show("/v2", async () => plane.server);
  const metadata = show("/v2/models/:model", ({ modelName, modelVersion }) =>
    plane.metadata(modelName, modelVersion),
  );
  const config = show(
    "/v2/models/:model/config",
    async ({ modelName, modelVersion }) =>
      configToJson(await plane.config(modelName, modelVersion)),
    ({ modelName, modelVersion }) => plane.answersDigest(modelName, modelVersion),
  );
  addRoute(routes, "/v2", { GET: server });
  addModelRoute(routes, "", { GET: metadata });
  addModelRoute(routes, "/config", { GET: config });
}
