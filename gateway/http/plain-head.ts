import { maxHeaderSize } from "node:http";
import { inferenceHeaderContentLength } from "../../protocol/headers.ts";
import { responseCoding } from "./content-coding.ts";
import { isHost } from "./host-header.ts";

/** The head of an infer call that asks for nothing but an answer. */
export interface PlainHead {
  /** Bytes of the head itself, with the empty line that ends it. */
  readonly bytes: Buffer;
  readonly bodyLength: number;
  /** The path, as the log tells it. */
  readonly path: string;
  readonly modelName: string;
  /** "" where the path has none. */
  readonly modelVersion: string;
  /** `Inference-Header-Content-Length`, as the client wrote it. */
  readonly jsonLength: string | undefined;
  readonly traceparent: string | undefined;
  readonly authorization: string | undefined;
  /** `X-API-Key`. */
  readonly apiKey: string | undefined;
}

/** Names that need no decoding and are not long; all others are left to the router. */
const requestLine =
  /^POST (?<path>\/v2\/models\/(?<model>\w[\w.-]{0,511})(?:\/versions\/(?<version>[0-9]{1,19}))?\/infer) HTTP\/1\.1$/u;
/** RFC 9110, 5.5: visible ASCII, and blanks within; no line is folded. */
const headerLine = /^(?<name>[a-z0-9-]+):[ \t]*(?<value>[!-~](?:[ -~\t]*[!-~])?)?[ \t]*$/iu;
const bodyLengths = /^\d{1,10}$/u;

/** A header by its name in lower case, and whether a call with that value is still a plain one. */
const plainHeaders: Readonly<Record<string, (value: string) => boolean>> = {
  accept: (value) => !value.includes("text/event-stream"),
  "accept-encoding": (value) => responseCoding(value) === "identity",
  authorization: anyValue,
  connection: (value) => value.toLowerCase() === "keep-alive",
  "content-length": (value) => bodyLengths.test(value),
  "content-type": anyValue,
  forwarded: anyValue,
  host: isHost,
  [inferenceHeaderContentLength]: anyValue,
  traceparent: anyValue,
  tracestate: anyValue,
  "user-agent": anyValue,
  via: anyValue,
  "x-api-key": anyValue,
  "x-forwarded-for": anyValue,
  "x-forwarded-host": anyValue,
  "x-forwarded-port": anyValue,
  "x-forwarded-proto": anyValue,
  "x-real-ip": anyValue,
  "x-request-id": anyValue,
};

const endOfHead = "\r\n\r\n";

/**
 * Reads a request's head if it is that of an ordinary infer call and wholly there. Every header must be known to change
 * nothing, and stand there once: whatever is unusual, doubtful or wrong gives undefined, and is node's to judge.
 */
export function plainHead(bytes: Buffer): PlainHead | undefined {
  const end = bytes.indexOf(endOfHead);
  if (end < 0 || end > maxHeaderSize) return undefined;
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const [, path, modelName, modelVersion = ""] = requestLine.exec(first) ?? [];
  const headers = plainHeaderValues(lines);
  const length = headers?.get("content-length");
  if (!path || !modelName || length === undefined || !headers?.get("host")) return undefined;
  return {
    bytes: Buffer.from(bytes.subarray(0, end + endOfHead.length)),
    bodyLength: Number(length),
    path,
    modelName,
    modelVersion,
    jsonLength: headers.get(inferenceHeaderContentLength),
    traceparent: headers.get("traceparent"),
    authorization: headers.get("authorization"),
    apiKey: headers.get("x-api-key"),
  };
}

function plainHeaderValues(lines: readonly string[]): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>();
  for (const line of lines) {
    const [, spelled = "", value = ""] = headerLine.exec(line) ?? [];
    const name = spelled.toLowerCase();
    if (values.has(name) || !Object.hasOwn(plainHeaders, name)) return undefined;
    if (!plainHeaders[name]?.(value)) return undefined;
    values.set(name, value);
  }
  return values;
}

function anyValue(): boolean {
  return true;
}
