/** Serves `/predict` on this machine: `node server.ts [PORT] [ADDRESS OF TIDEPOOL'S GRPC PORT]`. */
import { serve } from "@hono/node-server";
import { Ensemble } from "./ensemble.ts";
import { predictApp } from "./app.ts";

const [port = "8080", address = "127.0.0.1:8001"] = process.argv.slice(2);

serve(
  { fetch: predictApp(new Ensemble(address)).fetch, hostname: "127.0.0.1", port: Number(port) },
  (info) => process.stdout.write(`http://127.0.0.1:${info.port}/predict\n`),
);
