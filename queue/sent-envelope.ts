import type { ValidInferenceRequest } from "../protocol/valid-request.ts";
import type { PendingRequest } from "../serving/scheduler.ts";
import type { Gathering } from "./gathering.ts";
import type { InferJobData } from "./jobs.ts";
import { markedJobId } from "./tenant-mark.ts";

/** Empty items cost their sender nothing: without a bound a single request could make all priorities others. */
const mostItems = 4096;

/** Requests that one gateway has put into Redis together, and still waits for. */
export interface SentEnvelope {
  readonly id: string;
  readonly kind: RequestKind;
  readonly model: string;
  readonly line: EnvelopeLine | undefined;
  /** See {@link InferJobData.finish}. */
  readonly finish: number;
  /** The one that its job has got. */
  priority: number;
  /** By index; those that are over are missing. */
  readonly requests: (SentRequest | undefined)[];
  /** How many are not over. */
  open: number;
  written: boolean;
  /** It was not in Redis when last looked for: its replies are on their way, or it is lost. */
  missing: boolean;
}

/** A request on its way through Redis. */
export interface SentRequest {
  readonly pending: PendingRequest;
  /** Key of the version that is to run it. */
  readonly version: string;
  /** The request is answered, well or ill: nothing more will come. */
  done(): void;
  /** Where it goes when it must not go into the queue of all. */
  readonly line?: EnvelopeLine;
  /** Called instead of sending it again when Redis has lost it. */
  lost?(): void;
  /** From when it is sent. */
  kind?: RequestKind;
  place?: Place;
  /** It is being taken back. */
  leaving?: boolean;
  /** Nobody waits for it any more: it has its last reply, or was forgotten. */
  over: boolean;
  /** Replies it has had. */
  replies: number;
}

/** A line that one pool worker reads. */
export interface EnvelopeLine {
  /** Unlike that of any other line. */
  readonly name: string;
  push(data: InferJobData): Promise<void>;
}

/** What requests have in common that may share envelopes. */
export interface RequestKind {
  readonly version: string;
  readonly tenant: string;
  /** See {@link tenantMark}. */
  readonly mark: string;
  readonly gathering: Gathering<SentRequest>;
}

/** Where a request is. */
export interface Place {
  readonly envelope: SentEnvelope;
  readonly index: number;
}

/** Those that are not over. */
export function openOf({ requests }: SentEnvelope): SentRequest[] {
  return requests.filter((request) => request !== undefined);
}

/** The id of its job in the queue of all. */
export function jobIdOf({ id, kind }: SentEnvelope): string {
  return markedJobId(id, kind.mark);
}

/** What a request takes of its tenant's share. */
export function itemsOf({ batchSize }: Pick<ValidInferenceRequest, "batchSize">): number {
  return Math.min(mostItems, Math.max(1, batchSize));
}
