import type { ColdStartMarks } from "../protocol/cold-start.ts";
import { InferenceError, type StatusCode } from "../protocol/error.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import { noParameters } from "../protocol/parameters.ts";
import type { PoolTimes } from "./pool-trace.ts";
import { BundleWriter, type Frame, readBundle } from "./bundle.ts";
import {
  areAlike,
  contentBytes,
  type ParameterHead,
  parameterHeads,
  parametersOf,
  type TensorHead,
  tensorHead,
  tensorsOf,
} from "./tensor-heads.ts";

/** One answer on its way back to the gateway that waits for it. */
export interface Reply {
  readonly envelope: string;
  /** Which request of the envelope it answers. */
  readonly index: number;
  /** How many replies the same request has had before: a second run of it says the same again. */
  readonly number: number;
  /** Nothing comes after it. */
  readonly final: boolean;
  /** Absent when the request ends without a further response. */
  readonly outcome?: InferenceResponse | InferenceError;
  /** In the first reply to a request that waited until its version was started. */
  readonly coldStart?: ColdStartMarks;
  /** Of a request that is traced. */
  readonly times?: PoolTimes;
}

/** In place of a reply that lies under a key of its own. */
export interface ClaimedReply {
  readonly claim: string;
}

/** What the replies to requests of one envelope may have in common. */
interface ReplyHead {
  readonly to: string;
  readonly model?: readonly [name: string, version: string];
  readonly out?: readonly TensorHead[];
  readonly parameters?: readonly ParameterHead[];
}

/** What is different in each, and what is rare. */
interface ReplyOwn {
  readonly id?: string;
  readonly more?: true;
  readonly cold?: ColdStartMarks;
  readonly times?: PoolTimes;
  readonly error?: ErrorHead;
}

type ErrorHead = readonly [code: StatusCode, message: string, retryAfterSeconds?: number];

/** The head of a reply that is elsewhere: what is common to all. */
const claimCheck = 0;

/** About how much room a reply takes. */
export function replyBytes({ outcome }: Reply): number {
  if (!outcome) return 0;
  if (outcome instanceof InferenceError) return outcome.message.length;
  return contentBytes(outcome.outputs, outcome);
}

/** A value of Redis stays far below its bound of 512 MiB. */
const bundleBytes = 16 * 1024 * 1024;

/** Many replies in few bundles, in their order. */
export function encodeReplies(replies: readonly (Reply | ClaimedReply)[]): Buffer[] {
  const bundles: Buffer[] = [];
  let heads = new ReplyHeads();
  let size = 0;
  for (const reply of replies) {
    const more = "claim" in reply ? 0 : replyBytes(reply);
    if (size > 0 && size + more > bundleBytes) {
      bundles.push(heads.bundle.finish());
      [heads, size] = [new ReplyHeads(), 0];
    }
    heads.add(reply);
    size += more;
  }
  return [...bundles, heads.bundle.finish()];
}

/** A reply alone. */
export function encodeReply(reply: Reply): Buffer {
  const heads = new ReplyHeads();
  heads.add(reply);
  return heads.bundle.finish();
}

/** Remembers the last head, because the next reply often has the same: comparing costs less than writing it. */
class ReplyHeads {
  readonly bundle = new BundleWriter();
  #last: Reply | undefined;
  #head = claimCheck;

  add(reply: Reply | ClaimedReply): void {
    if ("claim" in reply) {
      const own = JSON.stringify(reply);
      this.bundle.add({ head: claimCheck, own, index: 0, number: 0, parts: [] });
      return;
    }
    if (!this.#last || !haveSameHead(this.#last, reply)) {
      this.#head = this.bundle.head(headOf(reply));
      this.#last = reply;
    }
    const { index, number } = reply;
    this.bundle.add({ head: this.#head, own: ownOf(reply), index, number, parts: partsOf(reply) });
  }
}

/** False for those of which it takes longer to find out. */
function haveSameHead(left: Reply, right: Reply): boolean {
  const [one, other] = [left.outcome, right.outcome];
  if (left.envelope !== right.envelope || !one || !other) return false;
  if (one instanceof InferenceError || other instanceof InferenceError) return false;
  return (
    areAlike(one.outputs, other.outputs) &&
    one.modelName === other.modelName &&
    one.modelVersion === other.modelVersion &&
    (one.parameters === other.parameters || one.parameters.size + other.parameters.size === 0)
  );
}

function headOf({ envelope: to, outcome }: Reply): ReplyHead {
  if (!outcome || outcome instanceof InferenceError) return { to };
  const { modelName, modelVersion, outputs, parameters } = outcome;
  return {
    to,
    model: [modelName, modelVersion],
    out: outputs.map(tensorHead),
    ...(parameters.size > 0 && { parameters: parameterHeads(parameters) }),
  };
}

function ownOf({ final, outcome, coldStart: cold, times }: Reply): string {
  if (outcome instanceof InferenceError) return JSON.stringify({ error: errorHead(outcome) });
  const id = outcome?.id ?? "";
  if (id === "" && final && !cold && !times) return "";
  const own: ReplyOwn = {
    ...(id !== "" && { id }),
    ...(!final && { more: true }),
    ...(cold && { cold }),
    ...(times && { times }),
  };
  return JSON.stringify(own);
}

function errorHead({ code, message, retryAfterSeconds: seconds }: InferenceError): ErrorHead {
  return seconds === undefined ? [code, message] : [code, message, seconds];
}

function partsOf({ outcome }: Reply): readonly Uint8Array[] {
  if (!outcome || outcome instanceof InferenceError) return [];
  return outcome.outputs.map(({ bytes }) => bytes);
}

/** What `encodeReplies` wrote; the tensors are views on the bundle. */
export function decodeReplies(bundle: Buffer): readonly (Reply | ClaimedReply)[] {
  const { common, frames } = readBundle(bundle);
  return frames.map((frame) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by ReplyHeads, as is the other
    if (frame.head === common) return frame.own as ClaimedReply;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return replyOf(frame, frame.head as ReplyHead);
  });
}

/** What `encodeReply` wrote. */
export function decodeReply(bundle: Buffer): Reply | undefined {
  const [reply] = decodeReplies(bundle);
  return reply && !("claim" in reply) ? reply : undefined;
}

function replyOf({ index, number, own: value, bytes }: Frame, head: ReplyHead): Reply {
  const own: ReplyOwn = value ?? {};
  const outcome = own.error ? errorOf(own.error) : responseOf(head, own.id ?? "", bytes);
  return {
    envelope: head.to,
    index,
    number,
    final: own.more !== true,
    ...(outcome && { outcome }),
    ...(own.cold && { coldStart: own.cold }),
    ...(own.times && { times: own.times }),
  };
}

function errorOf([code, message, seconds]: ErrorHead): InferenceError {
  const options = seconds === undefined ? {} : { retryAfterSeconds: seconds };
  return new InferenceError(code, message, options);
}

function responseOf(head: ReplyHead, id: string, bytes: Buffer): InferenceResponse | undefined {
  if (!head.model) return undefined;
  const [modelName, modelVersion] = head.model;
  return {
    modelName,
    modelVersion,
    id,
    outputs: tensorsOf(head.out ?? [], bytes),
    parameters: head.parameters ? parametersOf(head.parameters) : noParameters,
  };
}
