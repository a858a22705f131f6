import type { Hono } from "hono";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { type Access, admit, checked } from "../access.ts";
import { httpCategories, type HttpPath } from "../api-category.ts";
import { httpNeeds, type Need } from "../policy.ts";
import { type Restriction, type Restrictions, unlocks } from "../restrictions.ts";
import { credentialsIn } from "../header-credentials.ts";
import { edgeCaller } from "./edge-call.ts";
import { errorJson } from "./error-status.ts";
import type { AuditTrail } from "../audit-trail.ts";
import { audited } from "./audited.ts";
import type { HttpContext, HttpEnv, HttpHandler } from "./exchange.ts";

/** Where routes are added. */
export interface HttpRoutes {
  readonly app: Hono<HttpEnv>;
  readonly restrictions: Restrictions;
  /** Without it nobody is asked for a key. */
  readonly access: Access | undefined;
  /** Without it nobody is told of changes. */
  readonly audit: AuditTrail | undefined;
}

/** The methods of one path; any other one is answered with 405. */
export type Methods = Readonly<Partial<Record<"GET" | "POST" | "PUT" | "DELETE", HttpHandler>>>;

type ModelRest<Path = HttpPath> = Path extends `/v2/models/:model${infer Rest}` ? Rest : never;

/** Adds a path with its methods; one without a category does not compile. */
export function addRoute(routes: HttpRoutes, path: HttpPath, methods: Methods): void {
  addPath(routes, path, path, methods);
}

/** Adds `/v2/models/<model><rest>` and the same with a version. */
export function addModelRoute(routes: HttpRoutes, rest: ModelRest, methods: Methods): void {
  const path: HttpPath = `/v2/models/:model${rest}`;
  addPath(routes, path, path, methods);
  addPath(routes, `/v2/models/:model/versions/:version{[0-9]+}${rest}`, path, methods);
}

/** A whole answer that is an error. */
export function jsonError(
  message: string,
  status: number,
  more: Readonly<Record<string, string>> = {},
): Response {
  return new Response(errorJson(message), {
    status,
    headers: { "Content-Type": "application/json", ...more },
  });
}

/**
 * Adds a route for which the rules of a path of the tables hold. One handler a path instead of one a method: the router then runs it without composing anything, and HEAD and OPTIONS
 * are refused as the reference refuses them.
 */
function addPath(
  { app, restrictions, access, audit }: HttpRoutes,
  route: string,
  path: HttpPath,
  methods: Methods,
): void {
  const byMethod = new Map<string, HttpHandler>(Object.entries(methods));
  const restriction = restrictions.get(httpCategories[path]);
  const serve: HttpHandler = (context, next) => {
    if (restriction && !mayPass(context, restriction)) {
      const text = `This API is restricted, expecting header '${restriction.key}'`;
      throw new InferenceError(StatusCode.PermissionDenied, text);
    }
    const handler = byMethod.get(context.req.method);
    return handler ? handler(context, next) : jsonError("Method Not Allowed", 405);
  };
  const open = access ? guarded(access, httpNeeds[path], serve) : serve;
  app.all(route, audit ? audited(audit, path, open) : open);
}

/** Serves only those who may call. */
function guarded(access: Access, need: Need, serve: HttpHandler): HttpHandler {
  return async (context, next) => {
    const { incoming } = context.env;
    const wanted = { need, model: context.req.param("model") ?? "" };
    const found = await edgeCaller(access.edge, incoming);
    if (found) {
      context.set("caller", found);
      checked(found, wanted);
    } else {
      context.set("caller", await admit(access, credentialsIn(incoming.headers), wanted));
    }
    return serve(context, next);
  };
}

function mayPass(context: HttpContext, restriction: Restriction): boolean {
  const given = context.env.incoming.headers[restriction.key.toLowerCase()];
  return given !== undefined && unlocks(String(given), restriction);
}
