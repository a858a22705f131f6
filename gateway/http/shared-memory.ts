import { invalidArgument } from "../../protocol/error.ts";
import { asString, asUnsigned, member } from "../../protocol/json-access.ts";
import type { JsonDocument } from "../../protocol/json-text.ts";
import { cudaStatus, registerCuda } from "../shared-memory/cuda-regions.ts";
import type { RegionDescription } from "../shared-memory/region.ts";
import { SharedMemoryRegions } from "../shared-memory/regions.ts";
import { type Exchange, exchangeHandler, type HttpHandler, sendJson } from "./exchange.ts";
import { readJsonBody } from "./json-body.ts";
import type { HttpOptions } from "./options.ts";
import { addRoute, type HttpRoutes } from "./routes.ts";

/** `/v2/systemsharedmemory` and `/v2/cudasharedmemory`: regions of memory that clients share with the server. */
export function addSharedMemoryRoutes(routes: HttpRoutes, options: HttpOptions): void {
  const { log, maxInputBytes, sharedMemory: regions = new SharedMemoryRegions(false) } = options;
  const show = (status: (name: string) => readonly object[]): HttpHandler =>
    exchangeHandler(log, async (exchange) =>
      sendJson(exchange.outgoing, 200, JSON.stringify(status(regionName(exchange)))),
    );
  const change = (make: (name: string, exchange: Exchange) => void | Promise<void>): HttpHandler =>
    exchangeHandler(log, async (exchange) => {
      await make(regionName(exchange), exchange);
      sendJson(exchange.outgoing, 200, "");
    });
  const register = change(async (name, { incoming, outgoing, change: told }) => {
    const read = (document: JsonDocument) => describedRegion(name, document);
    const region = await readJsonBody(incoming, outgoing, maxInputBytes, read);
    told?.tell({ key: region.key, offset: region.offset, byteSize: region.byteSize });
    regions.register(region);
  });
  const unregister = change((name) => regions.unregister(name));
  const system = "/v2/systemsharedmemory";
  const status = { GET: show((name) => regions.status(name).map(statusFields)) };
  addRoute(routes, `${system}/status`, status);
  addRoute(routes, `${system}/register`, { POST: nameless("system", options) });
  addRoute(routes, `${system}/unregister`, { POST: unregister });
  addRoute(routes, `${system}/region/:region/status`, status);
  addRoute(routes, `${system}/region/:region/register`, { POST: register });
  addRoute(routes, `${system}/region/:region/unregister`, { POST: unregister });
  const cuda = "/v2/cudasharedmemory";
  const cudaShown = { GET: show((name) => cudaStatus(name, regions)) };
  const nothing = change(() => {});
  addRoute(routes, `${cuda}/status`, cudaShown);
  addRoute(routes, `${cuda}/register`, { POST: nameless("cuda", options) });
  addRoute(routes, `${cuda}/unregister`, { POST: nothing });
  addRoute(routes, `${cuda}/region/:region/status`, cudaShown);
  addRoute(routes, `${cuda}/region/:region/register`, { POST: change(registerCuda) });
  addRoute(routes, `${cuda}/region/:region/unregister`, { POST: nothing });
}

/** The region that the path names, "" where it names none. */
function regionName({ incoming }: Exchange): string {
  const [, , , region, name = ""] = new URL(incoming.url ?? "", "http://host").pathname.split("/");
  return region === "region" ? decoded(name) : "";
}

/** What encodes no text stands for itself. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function describedRegion(name: string, { root }: JsonDocument): RegionDescription {
  return {
    name,
    key: asString(given(root, "key"), ""),
    offset: asUnsigned(member(root, "offset") ?? 0, ""),
    byteSize: asUnsigned(given(root, "byte_size"), ""),
  };
}

function given(root: unknown, field: string): unknown {
  const value = member(root, field);
  if (value !== undefined) return value;
  throw invalidArgument(`Shared memory register request has no '${field}' field`);
}

function statusFields({ name, key, offset, byteSize }: RegionDescription): object {
  return { name, key, offset, byte_size: byteSize };
}

function nameless(kind: string, { log }: HttpOptions): HttpHandler {
  return exchangeHandler(log, () =>
    Promise.reject(
      invalidArgument(`'region name' is necessary to register ${kind} shared memory region`),
    ),
  );
}
