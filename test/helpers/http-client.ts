import { Agent, request as httpRequest } from "node:http";
import type { IncomingHttpHeaders } from "node:http";

/** What came back, as bytes: no client library looks at it first. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
}

export type Headers = Readonly<Record<string, string>>;

/** Sends requests as they are: no path is normalised, no header added, no body checked. */
export class HttpClient {
  readonly origin: string;
  readonly #agent = new Agent({ keepAlive: true });

  /** @param address as in `127.0.0.1:8000` */
  constructor(address: string) {
    this.origin = `http://${address}`;
  }

  ask(
    method: string,
    path: string,
    body?: Buffer | string,
    headers: Headers = {},
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { hostname, port } = new URL(this.origin);
    const options = { hostname, port, path, method, headers, agent: this.#agent };
    const request = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const bytes = Buffer.concat(chunks);
        const { statusCode: status = 0, headers: given } = response;
        resolve({ status, headers: given, bytes, text: bytes.toString() });
      });
    });
    request.on("error", reject);
    request.end(body);
    return promise;
  }

  get(path: string): Promise<Answer> {
    return this.ask("GET", path);
  }

  post(path: string, body: Buffer | string | object = "", headers: Headers = {}): Promise<Answer> {
    const bytes = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    return this.ask("POST", path, bytes, headers);
  }

  infer(model: string, body: Buffer | string | object, headers: Headers = {}): Promise<Answer> {
    return this.post(`/v2/models/${model}/infer`, body, headers);
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The text of an answer's `error`. */
export function errorOf(answer: Answer): string {
  return String(JSON.parse(answer.text).error);
}

/** An infer request whose tensor stands behind the JSON, and the header that says where the JSON ends. */
export function binaryInfer(head: object, tail: Uint8Array): [body: Buffer, headers: Headers] {
  const json = Buffer.from(JSON.stringify(head));
  return [Buffer.concat([json, tail]), { "Inference-Header-Content-Length": String(json.length) }];
}
