import { configToJson } from "../../repository/config-json.ts";
import type { DataPlane } from "../data-plane.ts";
import { pathModel } from "./exchange.ts";
import { addModelRoute, addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** What the server and its models are: metadata and configs. */
export function addMetadataRoutes(app: HttpRoutes, plane: DataPlane): void {
  addRoute(app, "/v2", { GET: (context) => context.json(plane.server) });
  addModelRoute(app, "", {
    GET: async (context) => {
      const { modelName, modelVersion } = pathModel(context);
      return context.json(await plane.metadata(modelName, modelVersion));
    },
  });
  addModelRoute(app, "/config", {
    GET: async (context) => {
      const { modelName, modelVersion } = pathModel(context);
      return context.body(
        JSON.stringify(configToJson(await plane.config(modelName, modelVersion))),
        {
          headers: { "Content-Type": "application/json" },
        },
      );
    },
  });
}
