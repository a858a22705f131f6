import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { KubernetesAccess } from "../../autoscaler/kubernetes-api.ts";

/** An answer that takes the place of the usual one. */
export type OddAnswer = (response: ServerResponse) => void;

/** A file of the fixtures' TLS certificates and keys. */
export function pem(name: string): Buffer {
  return readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));
}

/**
 * The part of a Kubernetes API server that a scaler sees, over HTTPS, as the API's reference and its Go types describe
 * it: the scale of one Deployment, with fields left out that are zero, and errors as Status objects.
 */
export class ApiServer {
  replicas = 0;
  token = "first-token";
  /** Each request as `PATCH /path` until now. */
  readonly asked: string[] = [];
  /** The next requests get these. */
  readonly oddAnswers: OddAnswer[] = [];
  readonly #folder = mkdtempSync(path.join(tmpdir(), "account-"));
  readonly #server = createServer(
    { cert: pem("server"), key: pem("server-key") },
    (request, response) => void this.#answer(request, response),
  );
  readonly #scalePath: string;
  #resourceVersion = 100;

  private constructor(scalePath: string) {
    this.#scalePath = scalePath;
    this.mount("token", this.token);
    this.mount("ca.crt", pem("ca"));
    this.mount("namespace", "models\n");
  }

  static async start(
    scalePath = "/apis/apps/v1/namespaces/models/deployments/pool/scale",
  ): Promise<ApiServer> {
    const api = new ApiServer(scalePath);
    await new Promise<void>((resolve) => api.#server.listen(0, "127.0.0.1", resolve));
    return api;
  }

  /** Puts a file where Kubernetes mounts it into a pod. */
  mount(name: string, content: string | Buffer): void {
    writeFileSync(path.join(this.#folder, name), content);
  }

  get access(): KubernetesAccess {
    const address = this.#server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    return { host: "127.0.0.1", port, accountFolder: this.#folder };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.asked.push(`${request.method} ${request.url}`);
    const body = await text(request);
    const odd = this.oddAnswers.shift();
    if (odd) odd(response);
    else if (request.headers.authorization !== `Bearer ${this.token}`)
      status(response, 401, "Unauthorized");
    else if (request.url !== this.#scalePath)
      status(response, 404, 'deployments.apps "pool" not found');
    else if (request.method === "GET") this.#scale(response);
    else this.#patch(request, response, body);
  }

  #patch(request: IncomingMessage, response: ServerResponse, body: string): void {
    if (request.headers["content-type"] !== "application/merge-patch+json") {
      status(response, 415, "the body of the request was in an unknown format");
      return;
    }
    const { spec }: { spec?: { replicas?: number } } = JSON.parse(body);
    this.replicas = spec?.replicas ?? this.replicas;
    this.#resourceVersion++;
    this.#scale(response);
  }

  #scale(response: ServerResponse): void {
    const spec = this.replicas === 0 ? {} : { replicas: this.replicas };
    send(response, 200, {
      kind: "Scale",
      apiVersion: "autoscaling/v1",
      metadata: {
        name: "pool",
        namespace: "models",
        uid: "7c1d9f2e-9a41-4b6e-8a63-0d3f1f9f9a11",
        resourceVersion: String(this.#resourceVersion),
        creationTimestamp: "2026-01-01T00:00:00Z",
      },
      spec,
      status: { replicas: this.replicas, selector: "app=pool" },
    });
  }
}

/** A failure as the API server tells it. */
export function status(response: ServerResponse, code: number, message: string): void {
  send(response, code, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    code,
  });
}

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}
