import { edgeWordHeader, type EdgeWord, signedHeaders } from "../../protocol/edge-word.ts";
import type { Call } from "./call.ts";
import type { Caller } from "./caller.ts";
import { listed } from "./env.ts";
import { inOrder, pause } from "./origins.ts";
import { refusal } from "./refusal.ts";
import { sha256 } from "./sha256.ts";
import { signedWord } from "./sign.ts";

/** What an origin is asked. */
export interface Question {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Headers;
  readonly body: Call["body"];
  readonly caller: Caller | undefined;
  /** It may be put again, though an origin may have begun to answer it, and its body is still there. */
  readonly isRepeatable: boolean;
}

/** Who could be reached, but only something in front of it; beyond 504 they are those of the edge's own network. */
const unreached: ReadonlySet<number> = new Set([502, 504, 520, 521, 522, 523, 524, 525, 526, 530]);

/**
 * Asks the first origin that answers. Another one is asked when the first cannot be reached, or says 502, 503 or 504, and
 * the question can be put again; nothing of an answer has gone to the client by then.
 */
export async function askOrigin(call: Call, question: Question): Promise<Response> {
  const began = Date.now();
  let last: Response | undefined;
  for (const origin of inOrder(listed(call.env.ORIGINS))) {
    // One after the other: what is asked twice may be run twice.
    // oxlint-disable-next-line no-await-in-loop
    const answer = await attempt(origin, question, call.env.EDGE_SECRET);
    if (answer && last) void last.body?.cancel();
    last = answer ?? last;
    const isDown = !answer || unreached.has(answer.status);
    if (isDown) pause(origin);
    else if (answer.status !== 503) break;
    if (!question.isRepeatable) break;
  }
  call.originMilliseconds += Date.now() - began;
  return last ?? refusal(503, "no origin can be reached at the moment", { "Retry-After": "1" });
}

/** Undefined where there is no answer. */
async function attempt(
  origin: string,
  { method, target, headers, body, caller }: Question,
  secret: string,
): Promise<Response | undefined> {
  const all = new Headers(headers);
  if (caller) {
    const word: EdgeWord = {
      method,
      target,
      headers: signedHeaders.map((name) => headers.get(name)),
      bodySha256: body instanceof Uint8Array ? await sha256([body]) : null,
      at: Date.now(),
      nonce: crypto.randomUUID(),
      caller: caller.word,
    };
    all.set(edgeWordHeader, await signedWord(word, secret));
  }
  try {
    return await fetch(origin + target, { method, headers: all, body, redirect: "manual" });
  } catch (cause) {
    // oxlint-disable-next-line no-console -- the log of a Worker
    console.warn(`${origin} cannot be reached`, cause);
    return undefined;
  }
}
