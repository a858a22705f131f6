import type { IncomingMessage } from "node:http";
import { readFile } from "node:fs/promises";
import { request } from "node:https";
import path from "node:path";
import { InferenceError, StatusCode } from "../protocol/error.ts";

/** Where the API server is, and who we are to it. */
export interface KubernetesAccess {
  readonly host: string;
  readonly port: number;
  /** Holds `token`, `ca.crt` and `namespace`, as Kubernetes mounts them into every pod. */
  readonly accountFolder: string;
}

export interface KubernetesQuestion {
  readonly method: "GET" | "PATCH";
  readonly path: string;
  /** A JSON merge patch. */
  readonly patch?: object;
  readonly signal: AbortSignal;
}

export interface KubernetesAnswer {
  readonly status: number;
  /** JSON, not looked at. */
  readonly body: unknown;
}

const mountedAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
/** A Scale object has a few hundred. */
const largestAnswerBytes = 1024 * 1024;

/** The access that Kubernetes gives to a pod; throws outside of one. */
export function podAccess(env: NodeJS.ProcessEnv): KubernetesAccess {
  const host = env["KUBERNETES_SERVICE_HOST"];
  const port = Number(env["KUBERNETES_SERVICE_PORT"]);
  if (host && port > 0) return { host, port, accountFolder: mountedAccount };
  const text = "Kubernetes API: KUBERNETES_SERVICE_HOST is not set, expected to run in a pod";
  throw new InferenceError(StatusCode.Unavailable, text);
}

/** The namespace that we run in. */
export async function ownNamespace({ accountFolder }: KubernetesAccess): Promise<string> {
  return (await readFile(path.join(accountFolder, "namespace"), "utf8")).trim();
}

/**
 * Asks the API server one thing. One GET and one PATCH need no client library, which would bring dozens of packages.
 * The files are read again each time, because tokens rotate; a connection of its own costs a few milliseconds, which
 * are nothing beside the start of a pod, and cannot be found dead.
 */
export async function askKubernetes(
  { host, port, accountFolder }: KubernetesAccess,
  question: KubernetesQuestion,
): Promise<KubernetesAnswer> {
  const [token, ca] = await Promise.all([
    readFile(path.join(accountFolder, "token"), "utf8"),
    readFile(path.join(accountFolder, "ca.crt")),
  ]);
  const body = question.patch && JSON.stringify(question.patch);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const asked = request({
    host,
    port,
    ca,
    agent: false,
    method: question.method,
    path: question.path,
    signal: question.signal,
    headers: {
      authorization: `Bearer ${token.trim()}`,
      accept: "application/json",
      ...(body && {
        "content-type": "application/merge-patch+json",
        "content-length": Buffer.byteLength(body),
      }),
    },
  });
  asked.on("response", resolve).on("error", reject).end(body);
  const response = await promise;
  return { status: response.statusCode ?? 0, body: parsed(await textOf(response)) };
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > largestAnswerBytes)
      throw new Error(`the answer is larger than ${largestAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** A proxy on the way may answer with a page. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
