import type { LoadOptions, UnloadOptions } from "../../protocol/engine.ts";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { asBoolean, asString, member, membersOf } from "../../protocol/json-access.ts";
import { decodeJson, readJson } from "../../protocol/json-text.ts";
import type { DataPlane } from "../data-plane.ts";
import { readBody } from "./body.ts";
import { exchangeHandler, sendJson } from "./exchange.ts";
import type { Exchange, HttpHandler } from "./exchange.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute } from "./routes.ts";
import type { HttpRoutes } from "./routes.ts";

const filePrefix = "file:";

/** The model repository: its index, and loading and unloading its models. */
export function addRepositoryRoutes(app: HttpRoutes, plane: DataPlane, options: HttpOptions): void {
  const answer = (respond: (exchange: Exchange, body: unknown) => Promise<string>): HttpHandler =>
    exchangeHandler(options.log, async (exchange) => {
      const body = await optionalJson(exchange, options.maxInputBytes);
      const json = await respond(exchange, body);
      if (json) sendJson(exchange.outgoing, 200, json);
      else exchange.outgoing.writeHead(200, ["Content-Length", "0"]).end();
    });
  const index = answer(async (_exchange, body) => {
    const onlyReady = asBoolean(member(body, "ready") ?? false, "");
    return JSON.stringify(await plane.repositoryIndex(onlyReady));
  });
  const load = answer(async ({ modelName }, body) => {
    await plane.load(modelName, loadOptions(member(body, "parameters")));
    return "";
  });
  const unload = answer(async ({ modelName }, body) => {
    await plane.unload(modelName, unloadOptions(member(body, "parameters")));
    return "";
  });
  const refuse = exchangeHandler(options.log, () => Promise.reject(repositoryNamed()));
  addRoute(app, "/v2/repository/index", { POST: index });
  // The reference takes the repository's name here, and does nothing with it.
  addRoute(app, "/v2/repository/:repository/index", { POST: index });
  addRoute(app, "/v2/repository/models/:model/load", { POST: load });
  addRoute(app, "/v2/repository/models/:model/unload", { POST: unload });
  addRoute(app, "/v2/repository/:repository/models/:model/load", { POST: refuse });
  addRoute(app, "/v2/repository/:repository/models/:model/unload", { POST: refuse });
}

/** The JSON of a body that may be left out; a request without numbers needs no exact ones. */
async function optionalJson({ incoming, outgoing }: Exchange, limit: number): Promise<unknown> {
  const body = await readBody(incoming, outgoing, limit);
  return body.length === 0 ? undefined : readJson(decodeJson(body), ({ root }) => root);
}

function loadOptions(parameters: unknown): LoadOptions {
  if (parameters === undefined) return {};
  let config: string | undefined;
  const files = new Map<string, Uint8Array>();
  for (const [key, value] of membersOf(parameters, "")) {
    if (key === "config") config = asString(value, "");
    else if (key.startsWith(filePrefix)) {
      files.set(key.slice(filePrefix.length), decodeBase64(key, asString(value, "")));
    } else throw invalid(`unrecognized load parameter '${key}'.`);
  }
  return { ...(config !== undefined && { config }), ...(files.size > 0 && { files }) };
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
  throw invalid(`Failed to decode base64 of load parameter '${key}'`);
}

function repositoryNamed(): InferenceError {
  return new InferenceError(
    StatusCode.Unsupported,
    "'repository_name' specification is not supported",
  );
}

function invalid(text: string): InferenceError {
  return new InferenceError(StatusCode.InvalidArg, text);
}
