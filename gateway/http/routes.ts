import type { Hono } from "hono";
import { errorJson } from "./error-status.ts";
import type { HttpEnv, HttpHandler } from "./exchange.ts";

export type HttpRoutes = Hono<HttpEnv>;

/** The methods of one path; any other one is answered with 405. */
export type Methods = Readonly<Partial<Record<"GET" | "POST" | "DELETE", HttpHandler>>>;

/**
 * Adds a path with its methods. One handler a path instead of one a method: the router then runs it without composing
 * anything, and HEAD and OPTIONS are refused as the reference refuses them.
 */
export function addRoute(app: HttpRoutes, path: string, methods: Methods): void {
  const byMethod = new Map<string, HttpHandler>(Object.entries(methods));
  app.all(path, (context, next) => {
    const handler = byMethod.get(context.req.method);
    return handler ? handler(context, next) : jsonError("Method Not Allowed", 405);
  });
}

/** Adds `/v2/models/<model><rest>` and the same with a version. */
export function addModelRoute(app: HttpRoutes, rest: string, methods: Methods): void {
  addRoute(app, `/v2/models/:model${rest}`, methods);
  addRoute(app, `/v2/models/:model/versions/:version{[0-9]+}${rest}`, methods);
}

/** A whole answer that is an error. */
export function jsonError(message: string, status: number): Response {
  return new Response(errorJson(message), {
    status,
    headers: { "Content-Type": "application/json" },
  });
}
