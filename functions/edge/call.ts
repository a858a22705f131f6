import type { Caller } from "./caller.ts";
import type { Env } from "./env.ts";

/** One call on its way through the edge Worker. */
export interface Call {
  readonly request: Request;
  readonly url: URL;
  readonly env: Env;
  /** Undefined for one that may be nobody's. */
  readonly caller: Caller | undefined;
  /** Whole where it was read, a stream where it is too large or of unknown length for that. */
  readonly body: Uint8Array | ReadableStream | null;
  /** So long was waited for origins. */
  originMilliseconds: number;
  /** True for an answer from the edge cache. */
  isHit: boolean;
  /** Lets something be finished behind the answer. */
  readonly later: (work: Promise<unknown>) => void;
}

/** The body of a request: read where it says that it is small enough. */
export async function bodyOf(request: Request, mostBytes: number): Promise<Call["body"]> {
  if (request.body === null) return null;
  const length = Number(request.headers.get("content-length") ?? NaN);
  return length <= mostBytes ? new Uint8Array(await request.arrayBuffer()) : request.body;
}
