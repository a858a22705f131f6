import { describe, expect, it } from "vitest";
import type { InstanceGroup, ModelInstance } from "../../../pool/instance/model-instance.ts";
import { sequenceBatchScheduler } from "../../../pool/scheduler/sequence-batch-scheduler.ts";
import { sequenceModel } from "../../../pool/scheduler/sequence-model.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { ModelSequenceBatching } from "../../../protocol/model-config.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import type { ExecutionTimings } from "../../../serving/model-statistics.ts";
import type { PendingRequest, Scheduler } from "../../../serving/scheduler.ts";
import { FakeClock, turn } from "../../helpers/fake-clock.ts";
import {
  pendingRequest,
  requestFor,
  responseTo,
  type SentRequest,
} from "../../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { noSequenceBatching } from "./sequence-stand.ts";

/** Adds IN to SUM and gives the sum as OUT and as NEXT; takes a turn for it, and more work at any time. */
class AddingInstance implements ModelInstance, InstanceGroup {
  readonly name = "adding";
  readonly hasRoom = true;
  readonly healthy = true;
  readonly instances: readonly ModelInstance[] = [this];
  failing = false;
  running = 0;
  mostRunning = 0;

  next(): ModelInstance {
    return this;
  }

  onRoom(): void {}

  close(): Promise<void> {
    return Promise.resolve();
  }

  async execute(requests: readonly PendingRequest[]): Promise<ExecutionTimings> {
    this.mostRunning = Math.max(this.mostRunning, ++this.running);
    await turn();
    this.running--;
    if (this.failing) throw new InferenceError(StatusCode.Internal, "no luck");
    for (const { request, sink } of requests) {
      const [value, state] = ["IN", "SUM"].map(
        (wanted) => request.inputs.find(({ name }) => name === wanted) ?? tensor(0),
      );
      const sum = tensor(numberOf(value) + numberOf(state));
      const outputs = ["OUT", "NEXT"].map((name) => ({ ...sum, name }));
      sink.send({ ...responseTo(request), outputs }, true);
    }
    return { computeInputNanoseconds: 0, computeInferNanoseconds: 0, computeOutputNanoseconds: 0 };
  }
}

function tensor(value: number): Tensor {
  const bytes = new Uint8Array(new Float32Array([value]).buffer);
  return { name: "IN", datatype: "FP32", shape: [1, 1], bytes };
}

function numberOf(given: Tensor | undefined): number {
  return given ? Buffer.from(given.bytes).readFloatLE(0) : NaN;
}

const model = servedModel("m", {
  maxBatchSize: 4,
  input: [modelInput("IN", "TYPE_FP32", [1])],
  output: [modelOutput("OUT", "TYPE_FP32", [1])],
});

const state = {
  inputName: "SUM",
  outputName: "NEXT",
  dataType: "TYPE_FP32",
  dims: [1],
  initialState: [],
  useSameBufferForInputOutput: false,
  useGrowableMemory: false,
};

/** A scheduler of one adding instance that keeps the sums. */
class Sums {
  readonly instance = new AddingInstance();
  readonly #scheduler: Scheduler;

  constructor(strategy: Partial<ModelSequenceBatching>) {
    const batching = { ...noSequenceBatching, state: [state], ...strategy };
    this.#scheduler = sequenceBatchScheduler(sequenceModel(model.config, batching, new Map()), {
      instances: this.instance,
      statistics: new ModelStatisticsRecorder({ ...model, tags: {} }),
      clock: new FakeClock(),
    });
  }

  say(id: string, value: number, start = false): SentRequest {
    const sequence = { id, start, end: false };
    const request = requestFor(model, [1, 1], { inputs: [tensor(value)], sequence });
    const sent = pendingRequest(request);
    this.#scheduler.enqueue(sent);
    return sent;
  }

  /** What came of a request in the end: its outputs, or its error. */
  async outcome({ sink }: SentRequest): Promise<unknown> {
    while (!sink.ended) await turn();
    if (sink.error) return sink.error.message;
    return sink.responses[0]?.outputs.map((output) => [output.name, numberOf(output)]);
  }
}

const strategies: [string, Partial<ModelSequenceBatching>][] = [
  ["direct", {}],
  [
    "oldest",
    {
      oldest: {
        maxCandidateSequences: 0,
        preferredBatchSize: [],
        maxQueueDelayMicroseconds: 0,
        preserveOrdering: false,
      },
    },
  ],
];

describe.each(strategies)("implicit states with the %s strategy", (_, strategy) => {
  it("go from request to request of a sequence, and to no client", async () => {
    const sums = new Sums(strategy);
    const sent = [
      sums.say("a", 1, true),
      sums.say("b", 10, true),
      sums.say("a", 2),
      sums.say("b", 20),
      sums.say("a", 4),
    ];
    const outcomes = await Promise.all(sent.map((one) => sums.outcome(one)));
    expect(outcomes).toEqual([1, 10, 3, 30, 7].map((sum) => [["OUT", sum]]));
  });

  it("begin anew with every START", async () => {
    const sums = new Sums(strategy);
    const sent = [sums.say("a", 1, true), sums.say("a", 2, true), sums.say("a", 4)];
    const outcomes = await Promise.all(sent.map((one) => sums.outcome(one)));
    expect(outcomes).toEqual([1, 2, 6].map((sum) => [["OUT", sum]]));
  });

  it("stay as they were when a request fails, and begin anew even when a START does", async () => {
    const sums = new Sums(strategy);
    await sums.outcome(sums.say("a", 1, true));
    sums.instance.failing = true;
    expect(await sums.outcome(sums.say("a", 2))).toBe("no luck");
    sums.instance.failing = false;
    expect(await sums.outcome(sums.say("a", 4))).toEqual([["OUT", 5]]);
    sums.instance.failing = true;
    await sums.outcome(sums.say("a", 8, true));
    sums.instance.failing = false;
    expect(await sums.outcome(sums.say("a", 16))).toEqual([["OUT", 16]]);
  });
});

describe("the direct strategy", () => {
  it("runs one batch at a time, even where the instance would take more", async () => {
    const sums = new Sums({});
    const first = sums.say("a", 1, true);
    await Promise.resolve();
    const others = [sums.say("b", 1, true), sums.say("c", 1, true)];
    await Promise.all([first, ...others].map((one) => sums.outcome(one)));
    expect(sums.instance.mostRunning).toBe(1);
  });
});
