import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { prometheusContentType } from "../telemetry/prometheus-text.ts";
import { listen, type ListenAddress } from "./listen.ts";

export interface MetricsServerOptions extends ListenAddress {
  /** Metrics as text, asked at every scrape. */
  readonly text: () => Promise<string>;
}

/** The endpoint that Prometheus scrapes: a port of its own, so that it need not be where clients are. */
export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens for scrapes; rejects with the system's error when it cannot. */
export async function listenMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const server = createServer((request, response) => void answer(request, response, options.text));
  const port = await listen(server, options);
  return {
    port,
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  text: () => Promise<string>,
): Promise<void> {
  const path = (request.url ?? "").split("?", 1)[0];
  if (path !== "/metrics") {
    response.writeHead(404).end();
  } else if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD" }).end();
  } else {
    // What is read from elsewhere may be away. Half of it would look as if the counters had begun anew.
    const found = await text().catch(() => undefined);
    if (found === undefined) {
      response.writeHead(503, { "retry-after": "1" }).end();
      return;
    }
    const body = Buffer.from(found);
    response.writeHead(200, {
      "content-type": prometheusContentType,
      "content-length": body.length,
    });
    // node leaves the body out when the request was HEAD.
    response.end(body);
  }
}
