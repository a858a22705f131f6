import type { Hono } from "hono";
import { httpCategories, type HttpPath } from "../api-category.ts";
import { type Restriction, type Restrictions, unlocks } from "../restrictions.ts";
import { errorJson } from "./error-status.ts";
import type { HttpContext, HttpEnv, HttpHandler } from "./exchange.ts";

/** Where routes are added. */
export interface HttpRoutes {
  readonly app: Hono<HttpEnv>;
  readonly restrictions: Restrictions;
}

/** The methods of one path; any other one is answered with 405. */
export type Methods = Readonly<Partial<Record<"GET" | "POST" | "DELETE", HttpHandler>>>;

type ModelRest<Path = HttpPath> = Path extends `/v2/models/:model${infer Rest}` ? Rest : never;

/** Adds a path with its methods; one without a category does not compile. */
export function addRoute(routes: HttpRoutes, path: HttpPath, methods: Methods): void {
  addPath(routes, path, methods, routes.restrictions.get(httpCategories[path]));
}

/** Adds `/v2/models/<model><rest>` and the same with a version. */
export function addModelRoute(routes: HttpRoutes, rest: ModelRest, methods: Methods): void {
  const restriction = routes.restrictions.get(httpCategories[`/v2/models/:model${rest}`]);
  addPath(routes, `/v2/models/:model${rest}`, methods, restriction);
  addPath(routes, `/v2/models/:model/versions/:version{[0-9]+}${rest}`, methods, restriction);
}

/** A whole answer that is an error. */
export function jsonError(message: string, status: number): Response {
  return new Response(errorJson(message), {
    status,
    headers: { "Content-Type": "application/json" },
  });
}

/**
 * One handler a path instead of one a method: the router then runs it without composing anything, and HEAD and OPTIONS
 * are refused as the reference refuses them.
 */
function addPath(
  { app }: HttpRoutes,
  path: string,
  methods: Methods,
  restriction: Restriction | undefined,
): void {
  const byMethod = new Map<string, HttpHandler>(Object.entries(methods));
  app.all(path, (context, next) => {
    if (restriction && !mayPass(context, restriction)) {
      return jsonError(`This API is restricted, expecting header '${restriction.key}'`, 403);
    }
    const handler = byMethod.get(context.req.method);
    return handler ? handler(context, next) : jsonError("Method Not Allowed", 405);
  });
}

function mayPass(context: HttpContext, restriction: Restriction): boolean {
  const given = context.env.incoming.headers[restriction.key.toLowerCase()];
  return given !== undefined && unlocks(String(given), restriction);
}
