import { beforeEach, describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { InferenceRequest } from "../../../protocol/inference.ts";
import type { ServedModel } from "../../../protocol/served-model.ts";
import { EnsembleScheduler } from "../../../serving/ensemble/ensemble-scheduler.ts";
import { StepTimes, StepTrace } from "../../../serving/ensemble/step-trace.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { pendingRequest, requestFor, type SentRequest } from "../../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { held, type HeldMember, step } from "./held-member.ts";

// left and right read the input at once; join reads what both have made.
const steps = [
  step("join", { A: "l", B: "r" }, { Y: "OUT", Z: "MORE" }),
  step("left", { A: "IN" }, { Y: "l" }),
  step("right", { A: "IN" }, { Y: "r", Z: "SIDE" }),
];
const outputs = ["OUT", "MORE", "SIDE"].map((name) => modelOutput(name, "TYPE_FP32", [1]));

let clock: FakeClock;
let statistics: ModelStatisticsRecorder;
let left: HeldMember;
let right: HeldMember;
let join: HeldMember;
let model: ServedModel;
let scheduler: EnsembleScheduler;
beforeEach(() => {
  clock = new FakeClock();
  statistics = new ModelStatisticsRecorder({ name: "e", version: "1", tags: {} });
  [left, right, join] = [held("left"), held("right"), held("join")];
  use([join, left, right], {});
});

function use(members: readonly HeldMember[], config: Partial<ServedModel["config"]>): void {
  model = servedModel("e", {
    platform: "ensemble",
    maxBatchSize: 8,
    input: [modelInput("IN", "TYPE_FP32", [1])],
    output: outputs,
    ensembleScheduling: { step: steps, maxInflightRequests: 0 },
    ...config,
  });
  const versions = members.map(({ version }) => version);
  scheduler = new EnsembleScheduler(model, versions, { statistics, clock });
}

function send(more: Partial<InferenceRequest> = {}): SentRequest {
  const sent = pendingRequest(requestFor(model, [1, 1], more), clock.now());
  scheduler.enqueue(sent);
  return sent;
}

/** The step's execution takes 1 ms for its inputs, so many for the model, and 2 for its outputs. */
function computed({ last }: HeldMember, milliseconds: number): void {
  const moments = { startAt: 10, inputEndAt: 11, outputStartAt: 11 + milliseconds };
  last.call.trace?.computed({ ...moments, endAt: 13 + milliseconds });
}

/** What was answered: each output's one number. */
function numbers({ sink }: SentRequest): Readonly<Record<string, number | undefined>> | undefined {
  const [response] = sink.responses;
  return (
    response &&
    Object.fromEntries(
      response.outputs.map(({ name, bytes }) => [name, new Float32Array(bytes.slice().buffer)[0]]),
    )
  );
}

describe("EnsembleScheduler", () => {
  it("sends a step as soon as all that it reads is there", () => {
    const sent = send();
    expect([left, right, join].map(({ taken }) => taken.length)).toEqual([1, 1, 0]);
    left.answer({ Y: 2 });
    expect(join.taken).toHaveLength(0);
    right.answer({ Y: 3, Z: 4 });
    expect(join.last.request.inputs.map(({ name, bytes }) => [name, bytes[3]])).toEqual([
      ["A", 64],
      ["B", 64],
    ]);
    expect(sent.sink.ended).toBe(false);
    join.answer({ Y: 5, Z: 6 });
    expect(numbers(sent)).toEqual({ OUT: 5, MORE: 6, SIDE: 4 });
    expect(scheduler.inflight).toBe(0);
  });

  it("waits for all steps also when one is answered at once", () => {
    left.enqueue = (pending) => {
      left.taken.push(pending);
      left.answer({ Y: 2 });
    };
    const sent = send();
    expect(sent.sink.ended).toBe(false);
    right.answer({ Y: 3, Z: 4 });
    join.answer({ Y: 5, Z: 6 });
    expect(numbers(sent)).toEqual({ OUT: 5, MORE: 6, SIDE: 4 });
  });

  it("passes on what the request says of itself", () => {
    const about = {
      id: "seven",
      priority: 2,
      timeoutMicroseconds: 9000,
      parameters: new Map([["speed", "high"]]),
      sequence: { id: 5n, start: true, end: false },
    };
    send(about);
    expect(left.last.request).toMatchObject({ ...about, modelName: "left", modelVersion: "1" });
    expect(left.last.request.outputs).toEqual([{ name: "Y" }]);
  });

  it("runs only the steps that the requested outputs need", () => {
    const sent = send({ outputs: [{ name: "SIDE" }] });
    expect(left.taken).toHaveLength(0);
    expect(right.last.request.outputs).toEqual([{ name: "Z" }]);
    right.answer({ Z: 4 });
    expect(numbers(sent)).toEqual({ SIDE: 4 });
  });

  it("goes on without a tensor that a step has not answered", () => {
    const sent = send();
    left.answer({ Y: 2 });
    right.answer({});
    expect(join.last.request.inputs.map(({ name }) => name)).toEqual(["A"]);
    join.answer({ Y: 5 });
    expect(numbers(sent)).toEqual({ OUT: 5 });
  });

  it("fails in the words of the first step that fails, and takes the others back", () => {
    const sent = send({ id: "seven" });
    left.last.sink.fail(
      new InferenceError(StatusCode.Unavailable, "[request id: seven] no room", {
        retryAfterSeconds: 3,
      }),
    );
    expect(sent.sink.error).toMatchObject({
      code: "UNAVAILABLE",
      message: "in ensemble 'e', no room",
      retryAfterSeconds: 3,
    });
    expect(right.last.call.cancelled).toBe(sent.sink.error);
    right.last.sink.fail(new InferenceError(StatusCode.Cancelled, "taken back"));
    expect(sent.sink.error?.message).toBe("in ensemble 'e', no room");
    expect(join.taken).toHaveLength(0);
    expect(statistics.observe()).toMatchObject({ success: 0, failures: { OTHER: 1 } });
  });

  it("fails when a step's model refuses what the one before has made", () => {
    const sent = send();
    left.answer({});
    right.answer({ Y: 3, Z: 4 });
    expect(sent.sink.error?.message).toMatch(
      /^in ensemble 'e', \[request id: <id_unknown>\] expected number of inputs between 1 and 2 but got 1 inputs for model 'join'/u,
    );
    expect(scheduler.inflight).toBe(0);
  });

  it("lets go of all steps when nobody waits any more", () => {
    const sent = send();
    sent.call.cancel();
    expect(sent.sink.error?.message).toBe("[request id: <id_unknown>] request was cancelled");
    expect([left, right].map(({ last }) => last.call.cancelled?.code)).toEqual([
      "CANCELLED",
      "CANCELLED",
    ]);
    expect(statistics.observe().failures.CANCELED).toBe(1);
  });

  it("sends nothing for a call that has ended before", () => {
    const sent = pendingRequest(requestFor(model, [1, 1]), 0);
    sent.call.cancel();
    scheduler.enqueue(sent);
    expect(sent.sink.error?.code).toBe("CANCELLED");
    expect(left.taken).toHaveLength(0);
  });

  it("tells whoever measures the call that a step waited for a cold start", () => {
    const sent = send();
    const marks = { decidedAt: 1, fetchAt: 2, loadAt: 3, warmupAt: 4, readyAt: 5 };
    left.last.call.coldStart = marks;
    left.answer({ Y: 2 });
    expect(sent.call.coldStart).toBe(marks);
  });

  it("counts a request once, with the time that the executions of its steps took together", async () => {
    const sent = send();
    await clock.advance(2);
    computed(left, 3);
    left.answer({ Y: 2 });
    await clock.advance(1);
    computed(right, 4);
    right.answer({ Y: 3, Z: 4 });
    await clock.advance(4);
    computed(join, 5);
    join.answer({ Y: 5, Z: 6 });
    expect(sent.sink.ended).toBe(true);
    const { inferenceStats, ...counts } = statistics.snapshot();
    expect(counts).toMatchObject({ inferenceCount: 1, executionCount: 1 });
    expect(inferenceStats).toMatchObject({
      success: { count: 1, nanoseconds: 7e6 },
      computeInput: { count: 1, nanoseconds: 3e6 },
      computeInfer: { count: 1, nanoseconds: 12e6 },
      computeOutput: { count: 1, nanoseconds: 6e6 },
      queue: { count: 1, nanoseconds: 0 },
    });
  });

  it("counts what the steps of a step took as its own", () => {
    const outer = pendingRequest(requestFor(model, [1, 1]));
    const times = new StepTimes();
    outer.call.trace = new StepTrace(times, undefined);
    scheduler.enqueue(outer);
    computed(left, 3);
    expect(times).toMatchObject({ computeInputNanoseconds: 1e6, computeInferNanoseconds: 3e6 });
  });

  it("takes nothing new when it stops, and ends when all is answered", async () => {
    send({ outputs: [{ name: "SIDE" }] });
    let stopped = false;
    const stopping = scheduler.stop().then(() => (stopped = true));
    expect(send().sink.error?.message).toContain("model 'e' is being unloaded");
    await Promise.resolve();
    expect(stopped).toBe(false);
    right.answer({ Z: 4 });
    expect(await stopping).toBe(true);
  });

  it("puts a batch of one before what a model without batching answers, and takes it away for one", () => {
    const plain = held("plain", { maxBatchSize: 0 });
    use([plain], {
      output: [modelOutput("OUT", "TYPE_FP32", [1])],
      ensembleScheduling: {
        step: [step("plain", { A: "IN" }, { Y: "OUT" })],
        maxInflightRequests: 0,
      },
    });
    const sent = send();
    expect(plain.last.request.inputs[0]?.shape).toEqual([1]);
    plain.answer({ Y: 2 }, [1]);
    expect(sent.sink.responses[0]?.outputs[0]?.shape).toEqual([1, 1]);
  });
});
