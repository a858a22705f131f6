import type { IncomingMessage, ServerResponse } from "node:http";
import { mayUseAllModels } from "../auth/caller.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { prometheusContentType } from "../telemetry/prometheus-text.ts";
import { type Access, admit } from "./access.ts";
import type { DataPlane } from "./data-plane.ts";
import { credentialsIn } from "./header-credentials.ts";
import { errorHeaders, errorJson, httpStatus } from "./http/error-status.ts";
import { listen, type ListenAddress } from "./listen.ts";
import type { PortTls } from "./tls/secure-server.ts";
import { createWebServer } from "./tls/web-server.ts";

export interface MetricsServerOptions extends ListenAddress {
  /** Metrics as text, asked at every scrape. */
  readonly text: () => Promise<string>;
  /** Asks for a key or token that may read about all models; without it everybody may scrape. */
  readonly access?: Access;
  /** Who is asked whether the server lives and is ready: probes get an answer here without any key. */
  readonly health?: Pick<DataPlane, "live" | "ready">;
  /** Without it connections are not encrypted. */
  readonly tls?: PortTls;
}

/** The endpoint that Prometheus scrapes: a port of its own, so that it need not be where clients are. */
export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Those who scrape and probe are few. */
const maxConnections = 1000;

const longestSilenceMilliseconds = 60_000;

/** Listens for scrapes; rejects with the system's error when it cannot. */
export async function listenMetrics(options: MetricsServerOptions): Promise<MetricsServer> {
  const { server, endHandshakes } = createWebServer({}, options.tls);
  server.maxConnections = maxConnections;
  server.timeout = longestSilenceMilliseconds;
  server.on("request", (request, response) => {
    answer(request, response, options).catch((cause: unknown) => refuse(response, cause));
  });
  const port = await listen(server, options);
  return {
    port,
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        endHandshakes();
      });
    },
  };
}

type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: MetricsServerOptions,
): Promise<void> {
  const found = answerAt((request.url ?? "").split("?", 1)[0], options);
  if (!found) {
    response.writeHead(404).end();
  } else if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD" }).end();
  } else {
    await found(request, response);
  }
}

function answerAt(
  path: string | undefined,
  { text, access, health }: MetricsServerOptions,
): Answer | undefined {
  if (path === "/metrics") {
    return async (request, response) => {
      if (access) await admitScrape(access, request);
      await sendMetrics(response, text);
    };
  }
  if (health && path === "/v2/health/live") return async (_, to) => sendHealth(to, health.live());
  if (health && path === "/v2/health/ready")
    return async (_, to) => sendHealth(to, await health.ready());
  return undefined;
}

function sendHealth(response: ServerResponse, good: boolean): void {
  response.writeHead(good ? 200 : 400, { "content-length": 0 }).end();
}

async function admitScrape(access: Access, { headers }: IncomingMessage): Promise<void> {
  const caller = await admit(access, credentialsIn(headers), { need: "read", model: "" });
  if (mayUseAllModels(caller)) return;
  const text = "metrics: the caller has scope read for some models, expected all";
  throw new InferenceError(StatusCode.PermissionDenied, text);
}

async function sendMetrics(response: ServerResponse, text: () => Promise<string>): Promise<void> {
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

function refuse(response: ServerResponse, cause: unknown): void {
  const error = InferenceError.from(cause);
  response.writeHead(httpStatus[error.code], errorHeaders(error)).end(errorJson(error.message));
}
