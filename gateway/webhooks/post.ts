import { lookup } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import type { LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { mayConnect, readTarget, type TargetPolicy } from "./target-policy.ts";

/** What is sent. */
export interface PostedMessage {
  /** Of the first target. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface PostOptions {
  readonly policy: TargetPolicy;
  /** Ends it, as when its time is over. */
  readonly signal: AbortSignal;
  /** What a name stands for. @defaultValue what the system says */
  readonly resolve?: Resolve;
}

export type Resolve = (name: string) => Promise<LookupAddress[]>;

/** What the last target answered; its body is nobody's business. */
export interface PostAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/** Why a target was not asked: that of a redirect, or the address that its name stands for. */
export class RefusedTargetError extends Error {
  override readonly name = "RefusedTargetError";
}

const mostRedirects = 3;
/** So much of an answer is read that its sender is not cut off amid a word; the rest is not. */
const mostAnswerBytes = 16 * 1024;

/**
 * Posts a message to a target that somebody else has chosen: it goes only where the policy lets it, and that is asked of
 * each redirect and of the very address that is connected to, so that no name can change what it stands for in between.
 */
export async function post(message: PostedMessage, options: PostOptions): Promise<PostAnswer> {
  let target = targetOf(options.policy, message.url);
  for (let redirects = 0; ; redirects++) {
    const { location, ...answer } = await send(target, message, options);
    // Only these two ask for the same once more; after the others nothing would be left to send.
    if (location === undefined || (answer.status !== 307 && answer.status !== 308)) return answer;
    if (redirects === mostRedirects) throw new RefusedTargetError("too many redirects");
    target = redirected(options.policy, target, location);
  }
}

interface Answer extends PostAnswer {
  readonly location: string | undefined;
}

function targetOf(policy: TargetPolicy, text: string): URL {
  try {
    return readTarget(policy, text);
  } catch (cause) {
    throw new RefusedTargetError("webhooks may not go to that URL", { cause });
  }
}

function redirected(policy: TargetPolicy, from: URL, location: string): URL {
  const { href = "" } = URL.canParse(location, from.href) ? new URL(location, from) : {};
  const to = targetOf(policy, href);
  if (from.protocol === "https:" && to.protocol !== "https:") {
    throw new RefusedTargetError("redirected from https to http");
  }
  return to;
}

async function send(
  url: URL,
  { headers, body }: PostedMessage,
  { policy, signal, resolve = systemLookup }: PostOptions,
): Promise<Answer> {
  const { promise, resolve: answer, reject } = Promise.withResolvers<http.IncomingMessage>();
  const outgoing = (url.protocol === "https:" ? https.request : http.request)(url.href, {
    method: "POST",
    headers: { ...headers, "Content-Length": Buffer.byteLength(body) },
    // A connection of its own: none that was opened for another name, and no proxy that asks for the name once more.
    agent: false,
    lookup: guardedLookup(policy, resolve),
    signal,
  });
  outgoing.on("response", answer).on("error", reject);
  // Comes alone where a target answers that it speaks another protocol now.
  outgoing.on("close", () => reject(new Error("closed")));
  outgoing.end(body);
  const incoming = await promise;
  await skip(incoming);
  const { "retry-after": retryAfter, location } = incoming.headers;
  return { status: incoming.statusCode ?? 0, retryAfter, location };
}

/** Gives only addresses that may be connected to. A host that is an address needs no lookup: {@link readTarget} has seen it. */
function guardedLookup(policy: TargetPolicy, resolve: Resolve): LookupFunction {
  const allowed = callbackify(async (name: string) => {
    const addresses = await resolve(name);
    const may = addresses.filter(({ address }) => mayConnect(policy, name, address));
    if (may[0]) return { first: may[0], all: may };
    throw new RefusedTargetError("webhooks may not go to the address of that name");
  });
  return (name, options, done) => {
    allowed(name, (error, found) => {
      if (error) done(error, []);
      else if (options.all) done(null, found.all);
      else done(null, found.first.address, found.first.family);
    });
  };
}

/** Reads an answer's body as far as it may go; that it breaks off changes nothing. */
async function skip(incoming: http.IncomingMessage): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of incoming) {
      bytes += Buffer.byteLength(chunk);
      if (bytes > mostAnswerBytes) break;
    }
  } catch {
    // Its head has said all that counts.
  }
  incoming.destroy();
}

function systemLookup(name: string): Promise<LookupAddress[]> {
  return lookup(name, { all: true });
}
