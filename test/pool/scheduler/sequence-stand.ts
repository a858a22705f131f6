import { sequenceBatchScheduler } from "../../../pool/scheduler/sequence-batch-scheduler.ts";
import { sequenceModel } from "../../../pool/scheduler/sequence-model.ts";
import type { InferenceRequest } from "../../../protocol/inference.ts";
import type { ModelConfig, ModelSequenceBatching } from "../../../protocol/model-config.ts";
import type { Shape } from "../../../protocol/shape.ts";
import { turn } from "../../helpers/fake-clock.ts";
import type { SentRequest } from "../../helpers/requests.ts";
import { SchedulerStand } from "../../helpers/scheduler-stand.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";

/** A sequence-batching model that differs from the usual one. */
export interface GivenSequences extends Partial<ModelSequenceBatching> {
  readonly maxBatchSize?: number;
  readonly instances?: number;
  readonly input?: ModelConfig["input"];
}

export const noSequenceBatching: ModelSequenceBatching = {
  maxSequenceIdleMicroseconds: 1_000_000,
  controlInput: [],
  state: [],
  iterativeSequence: false,
};

/**
 * A stand that is spoken to in sequences: `<a1` is the START of sequence "a", `a2` goes on with it, `a3>` is its END,
 * and `<a1>` is both. The id of the request is what is left without the signs.
 */
export class SequenceStand extends SchedulerStand {
  constructor({ maxBatchSize = 4, instances = 1, input, ...batching }: GivenSequences = {}) {
    const model = servedModel("m", {
      maxBatchSize,
      input: input ?? [modelInput("IN", "TYPE_FP32", [4])],
      output: [modelOutput("OUT", "TYPE_FP32", [4])],
    });
    const sequences = { ...noSequenceBatching, ...batching };
    super(
      model,
      (options) =>
        sequenceBatchScheduler(sequenceModel(model.config, sequences, new Map()), options),
      instances,
    );
  }

  /** One request, which the scheduler acts on at the end of the turn. */
  say(text: string, shape?: Shape, more: Partial<InferenceRequest> = {}): SentRequest {
    const id = text.replaceAll(/[<>]/gu, "");
    const sequence = {
      id: id.replaceAll(/\d/gu, ""),
      start: text.startsWith("<"),
      end: text.endsWith(">"),
    };
    return this.enqueue(id, shape, { sequence, ...more });
  }

  /** Requests of one turn. */
  async sayAll(...texts: readonly string[]): Promise<SentRequest[]> {
    const sent = texts.map((text) => this.say(text));
    await turn();
    return sent;
  }

  /** Ends an execution well, and lets the next batch form, which takes a turn of its own. */
  override async finish(execution: number): Promise<void> {
    await super.finish(execution);
    await turn();
  }

  /** The same for the newest one. */
  finishLast(): Promise<void> {
    return this.finish(this.instances.executions.length - 1);
  }
}

/** The same for those who know nothing of sequences: each request is one of its own. */
export class OneRequestSequences extends SequenceStand {
  #count = 0;

  override prepare(id: string, shape?: Shape, more: Partial<InferenceRequest> = {}): SentRequest {
    this.#count += 1;
    const sequence = { id: BigInt(this.#count), start: true, end: true };
    return super.prepare(id, shape, { sequence, ...more });
  }
}
