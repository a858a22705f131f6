import { createHash, timingSafeEqual } from "node:crypto";
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { Activations } from "./activations.ts";
import { arrivalsIn, type ModelPlace, modelOf } from "./arrivals.ts";
import type { SeenArrivals } from "./seen-arrivals.ts";

export interface AppOptions {
  readonly place: ModelPlace;
  /** Who posts events shows it, as the password of Basic or as a Bearer token. */
  readonly secret: string;
  readonly activations: Activations;
  readonly seen: SeenArrivals;
}

const maxBodyBytes = 2 ** 20;

/** Takes the events that an S3 server posts: `POST /events` is answered at once, and models are activated after it. */
export function createApp({ place, secret, activations, seen }: AppOptions): Hono {
  const app = new Hono();
  app.get("/health", (context) => context.json({ ready: true }));
  app.post(
    "/events",
    async (context, next) => {
      if (shows(context.req.header("authorization"), secret)) return next();
      const challenge = { "WWW-Authenticate": 'Basic realm="events"' };
      return context.json({ error: "expected the secret of this webhook" }, 401, challenge);
    },
    bodyLimit({
      maxSize: maxBodyBytes,
      onError: (context) => context.json({ error: `expected at most ${maxBodyBytes} bytes` }, 413),
    }),
    async (context) => {
      const event: unknown = await context.req.json().catch(() => undefined);
      if (event === undefined) return context.json({ error: "expected JSON" }, 400);
      const models = new Set<string>();
      let full = false;
      for (const arrival of arrivalsIn(event)) {
        const model = modelOf(arrival, place);
        if (model === undefined || !seen.isNew(arrival)) continue;
        if (activations.want(model)) {
          models.add(model);
        } else {
          seen.forget(arrival);
          full = true;
        }
      }
      if (full) return context.json({ error: "too many models wait" }, 503);
      return context.json({ models: [...models] });
    },
  );
  app.onError((error, context) => context.json({ error: error.message }, 400));
  return app;
}

/** How long the comparison takes tells nothing of the secret. */
function shows(authorization: string | undefined, secret: string): boolean {
  const [scheme = "", value = ""] = (authorization ?? "").split(" ");
  const basic = Buffer.from(value, "base64").toString("utf8");
  const given = scheme.toLowerCase() === "basic" ? basic.slice(basic.indexOf(":") + 1) : value;
  return timingSafeEqual(digestOf(given), digestOf(secret));
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
