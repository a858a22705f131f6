import type { Http2Bindings, HttpBindings } from "@hono/node-server";
import type { HttpApp } from "./app.ts";

type Answer = (request: Request, env: HttpBindings | Http2Bindings) => Promise<Response>;

/** What a page may do: show itself, and nothing that comes from elsewhere. */
const pageHeaders = {
  "Content-Security-Policy":
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  "Referrer-Policy": "no-referrer",
  "X-Frame-Options": "DENY",
};

/**
 * Adds to what the router answers the headers that keep browsers from guessing, and to pages those that bound what they may do.
 * Answers of the lanes before it are tensors, which no browser shows.
 */
export function withSecurityHeaders(fetch: HttpApp["fetch"]): Answer {
  return async (request, env) => {
    env.outgoing.setHeader("X-Content-Type-Options", "nosniff");
    const response = await fetch(request, env);
    if (response.headers.get("Content-Type")?.startsWith("text/html")) {
      for (const [name, value] of Object.entries(pageHeaders)) response.headers.set(name, value);
    }
    return response;
  };
}
