import type { ColdStartMarks } from "../protocol/cold-start.ts";
import { InferenceError, type StatusCode } from "../protocol/error.ts";
import type { InferenceResponse } from "../protocol/inference.ts";
import { noParameters } from "../protocol/parameters.ts";
import { readFrame, writeFrame } from "./frame.ts";
import {
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
}

interface ReplyHead {
  readonly to: readonly [envelope: string, index: number, number: number];
  readonly more?: true;
  readonly cold?: ColdStartMarks;
  readonly error?: readonly [code: StatusCode, message: string, retryAfterSeconds?: number];
  readonly model?: readonly [name: string, version: string, id: string];
  readonly out?: readonly TensorHead[];
  readonly parameters?: readonly ParameterHead[];
}

export function encodeReply(reply: Reply): Buffer {
  const { envelope, index, number, final, outcome, coldStart: cold } = reply;
  const to = [envelope, index, number] as const;
  const more = final ? {} : ({ more: true } as const);
  if (outcome === undefined) return writeFrame({ to, ...more }, []);
  if (outcome instanceof InferenceError) {
    const { code, message, retryAfterSeconds: seconds } = outcome;
    const error = [code, message, ...(seconds === undefined ? [] : [seconds])] as const;
    return writeFrame({ to, error }, []);
  }
  const { modelName, modelVersion, id, outputs, parameters } = outcome;
  const head: ReplyHead = {
    to,
    ...more,
    model: [modelName, modelVersion, id],
    out: outputs.map(tensorHead),
    ...(parameters.size > 0 && { parameters: parameterHeads(parameters) }),
    ...(cold && { cold }),
  };
  const parts = outputs.map(({ bytes }) => bytes);
  return writeFrame(head, parts);
}

/** In place of a reply that lies under a key of its own. */
export interface ClaimedReply {
  readonly claim: string;
}

export function encodeClaim(claimed: ClaimedReply): Buffer {
  return writeFrame(claimed, []);
}

/** The tensors are views on the frame. */
export function decodeReply(frame: Buffer): Reply | ClaimedReply {
  const { head: value, bytes } = readFrame(frame);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by one of the two above
  const head = value as ReplyHead | ClaimedReply;
  if ("claim" in head) return head;
  const [envelope, index, number] = head.to;
  const outcome = outcomeOf(head, bytes);
  return {
    envelope,
    index,
    number,
    final: head.more !== true,
    ...(outcome && { outcome }),
    ...(head.cold && { coldStart: head.cold }),
  };
}

function outcomeOf(head: ReplyHead, bytes: Buffer): InferenceResponse | InferenceError | undefined {
  if (head.error) {
    const [code, message, seconds] = head.error;
    const options = seconds === undefined ? {} : { retryAfterSeconds: seconds };
    return new InferenceError(code, message, options);
  }
  if (!head.model) return undefined;
  const [modelName, modelVersion, id] = head.model;
  return {
    modelName,
    modelVersion,
    id,
    outputs: tensorsOf(head.out ?? [], bytes),
    parameters: head.parameters ? parametersOf(head.parameters) : noParameters,
  };
}
