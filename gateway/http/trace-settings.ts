import { asArray, asString, member } from "../../protocol/json-access.ts";
import type { Tracer } from "../../telemetry/tracer.ts";
import type { DataPlane } from "../data-plane.ts";
import {
  checkTracedModel,
  type GivenTraceSettings,
  requiredTracer,
  traceSettingChanges,
  traceSettingFields,
} from "../trace-setting-changes.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import { readJsonBody } from "./json-body.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute } from "./routes.ts";
import type { HttpRoutes, Methods } from "./routes.ts";

/** `/v2/trace/setting` and the same of one model: shows which requests are traced, and changes that. */
export function addTraceRoutes(
  routes: HttpRoutes,
  plane: DataPlane,
  { log, maxInputBytes, tracer: given }: HttpOptions,
): void {
  const traced = async (modelName: string): Promise<Tracer> => {
    const tracer = requiredTracer(given);
    await checkTracedModel(plane, modelName);
    return tracer;
  };
  const methods: Methods = {
    GET: exchangeHandler(log, async ({ outgoing, modelName }) => {
      sendJson(outgoing, 200, settingsJson(await traced(modelName), modelName));
    }),
    POST: exchangeHandler(log, async ({ incoming, outgoing, modelName, change }) => {
      const tracer = await traced(modelName);
      const changes = await readJsonBody(incoming, outgoing, maxInputBytes, ({ root }) =>
        traceSettingChanges(givenSettings(root)),
      );
      change?.tell({ ...changes });
      if (Object.keys(changes).length > 0) tracer.update(modelName, changes);
      sendJson(outgoing, 200, settingsJson(tracer, modelName));
    }),
  };
  addRoute(routes, "/v2/trace/setting", methods);
  addRoute(routes, "/v2/models/:model/trace/setting", methods);
}

function givenSettings(json: unknown): GivenTraceSettings {
  const read =
    <Value>(as: (value: unknown) => Value) =>
    (name: string): Value | null | undefined => {
      const value = member(json, name);
      return value === undefined || value === null ? value : as(value);
    };
  return {
    has: (name) => member(json, name) !== undefined,
    texts: read((value) => asArray(value, "").map((one) => asString(one, ""))),
    text: read((value) => asString(value, "")),
    countGot: "got:",
  };
}

function settingsJson(tracer: Tracer, modelName: string): string {
  const fields = Object.entries(traceSettingFields(tracer, modelName));
  return JSON.stringify(
    Object.fromEntries(
      fields.map(([name, values]) => [name, name === "trace_level" ? values : values[0]]),
    ),
  );
}
