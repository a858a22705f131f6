import { createServer, type IncomingMessage } from "node:http";
import { listen } from "../../gateway/listen.ts";

/** A span as OTLP's JSON has it. */
export interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly events?: readonly { readonly name: string; readonly timeUnixNano: string }[];
  readonly attributes?: readonly Attribute[];
  readonly status?: { readonly code: number; readonly message?: string };
}

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
}

/** A collector that keeps the spans which it is sent over OTLP/HTTP, as JSON. */
export interface SpanCollector {
  readonly url: string;
  readonly spans: readonly Span[];
  /** Attributes of the resources that spans came with, as `<key>=<value>`. */
  readonly resource: ReadonlySet<string>;
  stop(): Promise<void>;
}

export async function startSpanCollector(): Promise<SpanCollector> {
  const spans: Span[] = [];
  const resource = new Set<string>();
  const server = createServer((request, response) => {
    void read(request).then(({ resourceSpans }) => {
      for (const { resource: of, scopeSpans } of resourceSpans) {
        for (const { key, value } of of.attributes) resource.add(`${key}=${value.stringValue}`);
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
      return spans.length;
    });
  });
  const port = await listen(server, { host: "127.0.0.1", port: 0 });
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    spans,
    resource,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

async function read(request: IncomingMessage): Promise<ExportRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}
