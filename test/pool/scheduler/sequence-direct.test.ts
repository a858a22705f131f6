import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { SequenceControl } from "../../../protocol/model-config.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { modelInput } from "../../helpers/served-model.ts";
import { sequenceCases } from "./sequence-cases.ts";
import { SequenceStand, type GivenSequences } from "./sequence-stand.ts";

const noDelay = { maxQueueDelayMicroseconds: 0, minimumSlotUtilization: 0 };
const stand = (given: GivenSequences = {}): SequenceStand =>
  new SequenceStand({ direct: noDelay, ...given });

const ready: SequenceControl = {
  kind: "CONTROL_SEQUENCE_READY",
  int32FalseTrue: [0, 1],
  fp32FalseTrue: [],
  boolFalseTrue: [],
  dataType: "TYPE_INVALID",
};

describe("sequenceBatchScheduler with the direct strategy", () => {
  sequenceCases({ direct: noDelay });

  it("joins the sequences of one turn, each in the row of its slot", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1", "<b1", "<c1");
    expect(sequences.ran).toEqual(["a1+b1+c1"]);
    await sequences.finishLast();
    await sequences.sayAll("c2", "b2", "a2");
    expect(sequences.ran).toEqual(["a1+b1+c1", "a2+b2+c2"]);
  });

  it("fills the rows below the last request, and none above it", async () => {
    const sequences = stand({ controlInput: [{ name: "READY", control: [ready] }] });
    await sequences.sayAll("<a1", "<b1", "<c1", "<d1");
    await sequences.finishLast();
    await sequences.sayAll("a2", "c2");
    expect(sequences.ran[1]).toBe("a2++c2");
    const rows = sequences.instances.executions[1]?.requests.map(({ request }) =>
      request.inputs.map(({ name, shape, bytes }) => [name, shape, bytes[0]]),
    );
    expect(rows?.[1]).toEqual([
      ["IN", [1, 4], 0],
      ["READY", [1, 1], 0],
    ]);
    expect(rows?.[2]?.[1]).toEqual(["READY", [1, 1], 1]);
  });

  it("counts no row without a request", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1", "<b1");
    await sequences.finishLast();
    await sequences.sayAll("b2");
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1+b1", "+b2"]);
    expect(sequences.statistics.observe()).toMatchObject({ inferenceCount: 3, executionCount: 2 });
  });

  it("gives the row of an ended sequence to the next one", async () => {
    const sequences = stand({ maxBatchSize: 2 });
    await sequences.sayAll("<a1>", "<b1", "<c1", "c2");
    await sequences.finishLast();
    await sequences.sayAll("b2");
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1+b1", "c1", "c2+b2"]);
  });

  it("leaves a request of another shape to a later batch", async () => {
    const sequences = stand({ input: [modelInput("IN", "TYPE_FP32", [-1])] });
    sequences.say("<a1", [1, 4]);
    sequences.say("<b1", [1, 5]);
    sequences.say("<c1", [1, 4]);
    await turn();
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1++c1", "+b1"]);
  });

  it("runs one batch at a time on an instance", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1");
    await sequences.sayAll("<b1");
    expect(sequences.ran).toEqual(["a1"]);
  });

  it("tries no request again when a batch fails", async () => {
    const sequences = stand();
    const sent = await sequences.sayAll("<a1", "<b1");
    sequences.instances.executions[0]?.fail(new InferenceError(StatusCode.Internal, "no luck"));
    await turn();
    expect(sent.map(({ sink }) => sink.error?.message)).toEqual(["no luck", "no luck"]);
    expect(sequences.ran).toHaveLength(1);
  });

  const patient = { maxQueueDelayMicroseconds: 1000, minimumSlotUtilization: 0.5 };

  it("waits for max_queue_delay_microseconds while less than minimum_slot_utilization is met", async () => {
    const sequences = stand({ direct: patient });
    await sequences.sayAll("<a1");
    await sequences.clock.advance(0.9);
    expect(sequences.ran).toEqual([]);
    await sequences.clock.advance(0.1);
    expect(sequences.ran).toEqual(["a1"]);
  });

  it("waits no longer than until enough slots have a request", async () => {
    const sequences = stand({ direct: patient });
    await sequences.sayAll("<a1");
    await sequences.sayAll("<b1");
    expect(sequences.ran).toEqual(["a1+b1"]);
  });

  it("does not wait without a minimum_slot_utilization", async () => {
    const sequences = stand({ direct: { ...patient, minimumSlotUtilization: 0 } });
    await sequences.sayAll("<a1");
    expect(sequences.ran).toEqual(["a1"]);
  });

  it("has one slot an instance where the model does not batch", async () => {
    const sequences = stand({ maxBatchSize: 0, instances: 2 });
    for (const text of ["<a1", "<b1", "<c1"]) sequences.say(text, [4]);
    await turn();
    expect(sequences.ran).toEqual(["a1", "b1"]);
  });
});
