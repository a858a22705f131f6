import { asBoolean, asString, asUnsigned, member } from "../../protocol/json-access.ts";
import {
  type GivenLogSettings,
  logSettingChanges,
  logSettingFields,
} from "../log-setting-changes.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import { readJsonBody } from "./json-body.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** `/v2/logging`: shows the log's settings, and changes those that a client may change. */
export function addLoggingRoutes(routes: HttpRoutes, options: HttpOptions): void {
  const { log, logSettings, maxInputBytes } = options;
  const settingsJson = (): string => JSON.stringify(logSettingFields(logSettings.get()));
  addRoute(routes, "/v2/logging", {
    GET: exchangeHandler(log, async ({ outgoing }) => sendJson(outgoing, 200, settingsJson())),
    POST: exchangeHandler(log, async ({ incoming, outgoing, change }) => {
      const changes = await readJsonBody(incoming, outgoing, maxInputBytes, ({ root }) =>
        logSettingChanges(givenSettings(root)),
      );
      change?.tell(changes);
      logSettings.update(changes);
      sendJson(outgoing, 200, settingsJson());
    }),
  });
}

/** A setting of null stays as it is. */
function givenSettings(json: unknown): GivenLogSettings {
  const read =
    <Value>(as: (value: unknown, subject: string) => Value) =>
    (name: string): Value | undefined => {
      const value = member(json, name) ?? undefined;
      return value === undefined ? undefined : as(value, "");
    };
  return {
    has: (name) => member(json, name) !== undefined,
    boolean: read(asBoolean),
    unsigned: read(asUnsigned),
    string: read(asString),
    formatName: "--log_format",
  };
}
