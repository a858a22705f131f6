import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { activate } from "./activate.ts";
import { Activations } from "./activations.ts";
import { createApp } from "./app.ts";
import { SeenArrivals } from "./seen-arrivals.ts";
import { readSettings } from "./settings.ts";

/** The webhook as a process of its own: `node functions/model-uploaded/server.ts`, told by its environment. */

const shortestSecret = 16;
/** Who posted the event was told that all is well and does not come again: a gateway may be away for an hour and a half. */
const attempts = 100;

const { MODEL_UPLOADED_SECRET: secret = "", HOST: hostname = "127.0.0.1" } = process.env;
const port = Number(process.env["PORT"] ?? 8090);
const settings = readSettings(process.env);
if (secret.length < shortestSecret)
  throw new Error(`MODEL_UPLOADED_SECRET: expected at least ${shortestSecret} characters`);

const activations = new Activations({
  quietMilliseconds: Number(process.env["QUIET_MILLISECONDS"] ?? 2000),
  activate: (model) =>
    activate(model, {
      url: settings.gatewayUrl,
      key: settings.gatewayKey,
      headers: settings.gatewayHeaders,
      attempts,
      fetch,
      sleep: (milliseconds) => sleep(milliseconds, undefined, { ref: false }),
    }),
  onDone: (model, versions) => say({ level: "info", msg: "model activated", model, versions }),
  onError: (model, error) =>
    say({ level: "warn", msg: "model could not be activated", model, error: String(error) }),
});
const app = createApp({ place: settings, secret, activations, seen: new SeenArrivals() });
const server = serve({ fetch: app.fetch, port, hostname }, (address) =>
  say({ level: "info", msg: "takes events", address: `${address.address}:${address.port}` }),
);

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    activations.close();
    server.close();
  });

function say(line: object): void {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...line })}\n`);
}
