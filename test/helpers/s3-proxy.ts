import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { pipeline } from "node:stream/promises";

/** What happens to one answer on its way. */
export type S3Fault =
  | { readonly kind: "status"; readonly status: number; readonly code: string }
  /** The connection breaks after so many bytes of the body. */
  | { readonly kind: "reset"; readonly afterBytes: number }
  /** The body ends well after so many bytes, as if there were no more. */
  | { readonly kind: "truncate"; readonly afterBytes: number }
  /** Nothing more comes after so many bytes. */
  | { readonly kind: "stall"; readonly afterBytes: number }
  /** One byte is another one. */
  | { readonly kind: "corrupt"; readonly atByte: number }
  /** The answer says that it is of another state of the object. */
  | { readonly kind: "etag"; readonly etag: string }
  /** Something else happens first, and the answer is as it is then. */
  | { readonly kind: "after"; readonly work: () => Promise<void> };

export interface SeenRequest {
  readonly method: string;
  /** Decoded, with its query. */
  readonly url: string;
  readonly range: string | undefined;
}

/** A real proxy in front of a real S3 server, which spoils the answers that a test chooses. */
export class S3Proxy {
  readonly requests: SeenRequest[] = [];
  /** Chooses the fault of each request; undefined lets it pass. */
  fault: (request: SeenRequest) => S3Fault | undefined = () => undefined;
  /** The most answers that were on their way at once. */
  mostAtOnce = 0;
  readonly #target: URL;
  readonly #server: Server;
  #atOnce = 0;

  private constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  /** @param target the endpoint of the server behind it */
  static async start(target: string): Promise<S3Proxy> {
    const proxy = new S3Proxy(target);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get endpoint(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("no port");
    return `http://127.0.0.1:${address.port}`;
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce);
    response.on("close", () => this.#atOnce--);
    const { method = "", url = "" } = request;
    const seen = { method, url: decodeURIComponent(url), range: request.headers.range };
    this.requests.push(seen);
    this.#pass(request, response, this.fault(seen)).catch(() => response.destroy());
  }

  async #pass(
    request: IncomingMessage,
    response: ServerResponse,
    fault: S3Fault | undefined,
  ): Promise<void> {
    if (fault?.kind === "status") {
      const body = `<Error><Code>${fault.code}</Code><Message>no</Message></Error>`;
      response.writeHead(fault.status, { "content-type": "application/xml" }).end(body);
      return;
    }
    if (fault?.kind === "after") await fault.work();
    const upstream = await this.#ask(request);
    const headers = { ...upstream.headers };
    if (fault?.kind === "truncate") headers["content-length"] = String(fault.afterBytes);
    if (fault?.kind === "etag") headers.etag = fault.etag;
    response.writeHead(upstream.statusCode ?? 502, headers);
    response.flushHeaders();
    await pipeline(spoiled(upstream, response, fault), response);
  }

  /** The signature covers the host's name as the client knows it, so it is passed on as it is. */
  async #ask(request: IncomingMessage): Promise<IncomingMessage> {
    const { hostname, port } = this.#target;
    const { method, url: path, headers } = request;
    const forwarded = httpRequest({ hostname, port, method, path, headers });
    request.pipe(forwarded);
    const [upstream]: IncomingMessage[] = await once(forwarded, "response");
    if (!upstream) throw new Error("no answer");
    return upstream;
  }
}

async function* spoiled(
  upstream: IncomingMessage,
  response: ServerResponse,
  fault: S3Fault | undefined,
): AsyncGenerator<Buffer> {
  let passed = 0;
  for await (const piece of upstream) {
    const bytes: Buffer = piece;
    if (fault?.kind === "corrupt") corrupt(bytes, fault.atByte - passed);
    const room = fault && "afterBytes" in fault ? fault.afterBytes - passed : bytes.length;
    yield bytes.subarray(0, room);
    passed += bytes.length;
    if (room >= bytes.length) continue;
    if (fault?.kind === "reset") response.destroy();
    if (fault?.kind === "stall") await once(response, "close");
    return;
  }
}

function corrupt(bytes: Buffer, index: number): void {
  const byte = bytes[index];
  if (byte !== undefined) bytes[index] = byte ^ 0xff;
}
