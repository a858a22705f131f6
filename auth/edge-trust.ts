import { createHmac, timingSafeEqual } from "node:crypto";
import {
  type EdgeCaller,
  type EdgeWord,
  readEdgeWord,
  signedHeaders,
} from "../protocol/edge-word.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Caller } from "./caller.ts";
import { keyHolder } from "./key-holder.ts";
import type { KeyRing } from "./key-ring.ts";
import { callerOf } from "./token-claims.ts";
import type { UsedWords } from "./used-words.ts";

export interface EdgeTrustOptions {
  /** Any of them may have signed, so that one can be replaced by another. */
  readonly secrets: readonly string[];
  /** What the keys are looked up in again; without it callers with keys are refused. */
  readonly keys: KeyRing | undefined;
  readonly used: UsedWords;
  /** Milliseconds since the epoch. @defaultValue Date.now */
  readonly now?: () => number;
}

/** A call as it arrived, to be held against what the edge said of it. */
export interface ArrivedCall {
  readonly method: string;
  readonly target: string;
  header(name: string): string | undefined;
}

/** What the edge Worker found out of a call. */
export interface EdgeFinding {
  readonly caller: Caller;
  /** What the body must hash to, in hexadecimal; null where the edge did not read it. */
  readonly bodySha256: string | null;
}

/** So far may the edge's clock be from ours, either way, with the way of the call. */
const windowMilliseconds = 30_000;
/** After that long a word is too old to be used again. */
export const wordLifeMilliseconds = 2 * windowMilliseconds;

/** Takes the edge Worker's word for who calls, and looks keys up again, so that a revoked one ends here as fast as ever. */
export class EdgeTrust {
  readonly #options: EdgeTrustOptions;
  readonly #now: () => number;

  constructor(options: EdgeTrustOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Rejects with UNAUTHENTICATED, or with UNAVAILABLE where nobody can tell at the moment. */
  async find(header: string, call: ArrivedCall): Promise<EdgeFinding> {
    const word = this.#signed(header);
    if (!word || !isAbout(word, call)) throw refused("it is not signed for this call");
    if (Math.abs(this.#now() - word.at) > windowMilliseconds) {
      throw refused("it was signed too long ago, or a clock is wrong");
    }
    const caller = await this.#caller(word.caller);
    if (!(await this.#options.used.use(word.nonce))) throw refused("it was used before");
    return { caller, bodySha256: word.bodySha256 };
  }

  #signed(header: string): EdgeWord | undefined {
    const [signature = ""] = header.split(" ", 1);
    const text = header.slice(signature.length + 1);
    const given = Buffer.from(signature, "hex");
    const good = this.#options.secrets.some((secret) => {
      const expected = createHmac("sha256", secret).update(text).digest();
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    return good ? readEdgeWord(text) : undefined;
  }

  async #caller(said: EdgeCaller): Promise<Caller> {
    if (said.kind === "token") return callerOf({ ...said.claims }, usualNames);
    const { keys } = this.#options;
    if (!keys) throw refused("it is for an API key, and there are none here");
    await keys.refresh();
    const holder = keyHolder(keys, said.id, Buffer.from(said.sha256, "hex"), this.#now());
    if (holder) return holder;
    throw new InferenceError(StatusCode.Unauthenticated, "API key: given one that is not valid");
  }
}

const usualNames = { tenant: "tenant", scope: "scope", models: "models" };

function isAbout({ method, target, headers }: EdgeWord, call: ArrivedCall): boolean {
  return (
    method === call.method &&
    target === call.target &&
    signedHeaders.every((name, i) => (call.header(name) ?? null) === headers[i])
  );
}

function refused(reason: string): InferenceError {
  return new InferenceError(StatusCode.Unauthenticated, `the edge's word for a call: ${reason}`);
}
