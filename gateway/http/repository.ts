import { seenBy } from "../../auth/caller.ts";
import type { UnloadOptions } from "../../protocol/engine.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { asBoolean, asString, member, membersOf } from "../../protocol/json-access.ts";
import { decodeJson, readJson } from "../../protocol/json-text.ts";
import type { DataPlane } from "../data-plane.ts";
import {
  loadDetails,
  type LoadParameter,
  loadOptions,
  repositoryNamed,
} from "../load-parameters.ts";
import { readBody } from "./body.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import type { Exchange, HttpHandler } from "./exchange.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

/** The model repository: its index, loading and unloading its models, and forgetting what they have answered. */
export function addRepositoryRoutes(
  routes: HttpRoutes,
  plane: DataPlane,
  options: HttpOptions,
): void {
  const answer = (respond: (exchange: Exchange, body: unknown) => Promise<string>): HttpHandler =>
    exchangeHandler(options.log, async (exchange) => {
      const body = await optionalJson(exchange, options.maxInputBytes);
      const json = await respond(exchange, body);
      if (json) sendJson(exchange.outgoing, 200, json);
      else exchange.outgoing.writeHead(200, ["Content-Length", "0"]).end();
    });
  const index = answer(async ({ caller }, body) => {
    const onlyReady = asBoolean(member(body, "ready") ?? false, "");
    return JSON.stringify(seenBy(caller, await plane.repositoryIndex(onlyReady)));
  });
  const load = answer(async ({ modelName, change }, body) => {
    const brought = loadOptions(loadParameters(member(body, "parameters")));
    change?.tell(loadDetails(brought));
    await plane.load(modelName, brought);
    return "";
  });
  const unload = answer(async ({ modelName, change }, body) => {
    const how = unloadOptions(member(body, "parameters"));
    change?.tell({ ...how });
    await plane.unload(modelName, how);
    return "";
  });
  const flush = exchangeHandler(options.log, async ({ modelName, outgoing }) => {
    await plane.flushCache(modelName);
    outgoing.writeHead(200, ["Content-Length", "0"]).end();
  });
  const refuse = exchangeHandler(options.log, () => Promise.reject(repositoryNamed()));
  addRoute(routes, "/v2/repository/index", { POST: index });
  // The reference takes the repository's name here, and does nothing with it.
  addRoute(routes, "/v2/repository/:repository/index", { POST: index });
  addRoute(routes, "/v2/repository/models/:model/load", { POST: load });
  addRoute(routes, "/v2/repository/models/:model/unload", { POST: unload });
  addRoute(routes, "/v2/repository/:repository/models/:model/load", { POST: refuse });
  addRoute(routes, "/v2/models/:model/cache/flush", { POST: flush });
  addRoute(routes, "/v2/repository/:repository/models/:model/unload", { POST: refuse });
}

/** The JSON of a body that may be left out; a request without numbers needs no exact ones. */
async function optionalJson({ incoming, outgoing }: Exchange, limit: number): Promise<unknown> {
  const body = await readBody(incoming, outgoing, limit);
  return body.length === 0 ? undefined : readJson(decodeJson(body), ({ root }) => root);
}

function loadParameters(parameters: unknown): readonly (readonly [string, LoadParameter])[] {
  if (parameters === undefined) return [];
  return membersOf(parameters, "").map(([key, value]) => [
    key,
    { text: () => asString(value, ""), bytes: () => decodeBase64(key, asString(value, "")) },
  ]);
}

/** The reference ignores what it does not know here. */
function unloadOptions(parameters: unknown): UnloadOptions {
  return { unloadDependents: asBoolean(member(parameters, "unload_dependents") ?? false, "") };
}

/** `Buffer.from` skips what is not base64; a model file must not be changed that way. */
function decodeBase64(key: string, text: string): Buffer {
  if (text.length % 4 === 0 && /^[A-Za-z\d+/]*={0,2}$/.test(text)) {
    return Buffer.from(text, "base64");
  }
  throw new InferenceError(
    StatusCode.InvalidArg,
    `Failed to decode base64 of load parameter '${key}'`,
  );
}
