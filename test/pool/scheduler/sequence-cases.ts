import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { schedulerCases } from "./scheduler-cases.ts";
import { OneRequestSequences, SequenceStand, type GivenSequences } from "./sequence-stand.ts";

type Strategy = Pick<GivenSequences, "direct" | "oldest">;

const startError = (id: string): string =>
  `inference request for sequence ${id} to model 'm' must specify the START flag on the first request of the sequence`;
const idError =
  "inference request to model 'm' must specify a non-zero or non-empty correlation ID";
const timeoutText = "timeout of the corresponding sequence has been expired";

/** What every strategy owes its sequences. */
export function sequenceCases(strategy: Strategy): void {
  const stand = (given: GivenSequences = {}): SequenceStand =>
    new SequenceStand({ ...strategy, ...given });
  const oneSlot = (given: GivenSequences = {}): SequenceStand =>
    stand({ maxBatchSize: 1, ...given });

  describe("with sequences of one request", () => {
    schedulerCases(
      () => new OneRequestSequences({ ...strategy, maxBatchSize: 1 }),
      () => timeoutText,
    );
  });

  it("runs the requests of a sequence one after the other", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1", "a2", "a3>");
    expect(sequences.ran).toEqual(["a1"]);
    await sequences.finishLast();
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1", "a2", "a3"]);
  });

  it.each([
    ["a number", 7n, startError("7")],
    ["a text", "seven", startError("seven")],
    ["zero", 0n, idError],
    ["empty", "", idError],
  ])("refuses a sequence without a START whose id is %s", (_, id, message) => {
    const sequences = stand();
    const { sink } = sequences.enqueue("x", undefined, {
      sequence: { id, start: false, end: false },
    });
    expect(sink.error).toMatchObject({ code: "INVALID_ARG", message });
    expect(sequences.scheduler.inflight).toBe(0);
  });

  it("keeps the sequences of tenants apart", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1");
    const foreign = sequences.prepare("foreign", undefined, {
      sequence: { id: "a", start: false, end: true },
    });
    foreign.call.principal = { name: "", tenant: "another" };
    sequences.scheduler.enqueue(foreign);
    expect(foreign.sink.error).toMatchObject({ message: startError("a") });
    await sequences.finishLast();
    await sequences.sayAll("a2>");
    expect(sequences.ran).toEqual(["a1", "a2"]);
  });

  it("refuses a request without a sequence", () => {
    expect(stand().enqueue("x").sink.error?.message).toBe(idError);
  });

  it("refuses a batch", () => {
    expect(stand().say("<a1", [2, 4]).sink.error?.message).toBe(
      "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher",
    );
  });

  it("knows a sequence no longer when its END has come", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1", "a2>");
    expect(sequences.say("a3").sink.error?.message).toBe(startError("a"));
    await sequences.finishLast();
    await sequences.finishLast();
    expect(sequences.say("<a4").sink.ended).toBe(false);
  });

  it("begins an open sequence anew in its place when another START comes", async () => {
    const sequences = oneSlot();
    await sequences.sayAll("<a1", "<a2", "a3>", "<b1>");
    for (let i = 0; i < 4; i++) await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1", "a2", "a3", "b1"]);
  });

  it("keeps sequences without a slot in line, whole and in their order", async () => {
    const sequences = oneSlot();
    await sequences.sayAll("<a1", "<b1", "<c1", "b2>", "c2>", "a2>");
    for (let i = 0; i < 6; i++) await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1", "a2", "b1", "b2", "c1", "c2"]);
  });

  it("takes a sequence of the same name for another one after the END of the first", async () => {
    const sequences = oneSlot();
    await sequences.sayAll("<a1", "a2>", "<a3", "a4>");
    for (let i = 0; i < 4; i++) await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1", "a2", "a3", "a4"]);
    expect(sequences.scheduler.inflight).toBe(0);
  });

  it("fails all of a sequence that waits for a slot longer than one of its requests may", async () => {
    const sequences = oneSlot();
    await sequences.sayAll("<a1");
    const b1 = sequences.say("<b1");
    const b2 = sequences.say("b2", undefined, { timeoutMicroseconds: 2000 });
    const b3 = sequences.say("b3", undefined, { timeoutMicroseconds: 9000 });
    await sequences.clock.advance(1.9);
    expect(b2.sink.ended).toBe(false);
    await sequences.clock.advance(0.1);
    for (const { sink } of [b1, b2, b3]) {
      expect(sink.error).toMatchObject({ code: "UNAVAILABLE", message: timeoutText });
    }
    expect(sequences.say("b4").sink.error?.message).toBe(startError("b"));
    expect(sequences.statistics.observe().failures).toMatchObject({ REJECTED: 3 });
  });

  it("lets no timeout touch a sequence that has a slot", async () => {
    const sequences = oneSlot();
    await sequences.sayAll("<a1");
    const a2 = sequences.say("a2", undefined, { timeoutMicroseconds: 1000 });
    await sequences.clock.advance(5000);
    await sequences.finishLast();
    await sequences.finishLast();
    expect(a2.sink.responses).toHaveLength(1);
  });

  it("looks at no timeout any more when a sequence gets its slot", async () => {
    const sequences = oneSlot();
    await sequences.sayAll("<a1>");
    sequences.say("<b1", undefined, { timeoutMicroseconds: 5000 });
    const b2 = sequences.say("b2");
    await sequences.finishLast();
    await sequences.clock.advance(9);
    expect(b2.sink.ended).toBe(false);
  });

  it("goes on with a sequence whose running request is cancelled", async () => {
    const sequences = stand();
    const [a1, a2] = await sequences.sayAll("<a1", "a2");
    a1?.call.cancel();
    expect([a1?.sink.ended, a2?.sink.ended]).toEqual([false, false]);
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1", "a2"]);
  });

  it("ends a sequence that is idle for too long, and gives its slot to the next", async () => {
    const sequences = oneSlot({ maxSequenceIdleMicroseconds: 5000 });
    await sequences.sayAll("<a1", "<b1");
    await sequences.clock.advance(60);
    await sequences.finishLast();
    await sequences.clock.advance(4.9);
    expect(sequences.ran).toEqual(["a1"]);
    await sequences.clock.advance(0.1);
    expect(sequences.ran).toEqual(["a1", "b1"]);
    expect(sequences.say("a2").sink.error?.message).toBe(startError("a"));
  });

  it("begins to count anew whenever a sequence is idle again", async () => {
    const sequences = stand({ maxSequenceIdleMicroseconds: 5000 });
    await sequences.sayAll("<a1");
    await sequences.finishLast();
    await sequences.clock.advance(4);
    await sequences.sayAll("a2");
    await sequences.clock.advance(4);
    await sequences.finishLast();
    await sequences.clock.advance(4);
    expect(sequences.say("a3").sink.error).toBeUndefined();
  });

  it("goes on with a sequence whose request has failed", async () => {
    const sequences = stand();
    const [a1] = await sequences.sayAll("<a1", "a2");
    sequences.instances.executions[0]?.fail(new InferenceError(StatusCode.Internal, "no luck"));
    await turn();
    await turn();
    expect(a1?.sink.error?.message).toBe("no luck");
    expect(sequences.ran).toEqual(["a1", "a2"]);
  });

  it("ends a sequence before a request that is cancelled", async () => {
    const sequences = stand();
    const [, a2, a3, a4] = await sequences.sayAll("<a1", "a2", "a3", "a4");
    a3?.call.cancel();
    expect(a3?.sink.error).toMatchObject({
      code: "CANCELLED",
      message: "[request id: a3] request was cancelled",
    });
    expect([a2?.sink.ended, a4?.sink.error?.code]).toEqual([false, "CANCELLED"]);
    expect(sequences.say("a5").sink.error?.message).toBe(startError("a"));
    await sequences.finishLast();
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1", "a2"]);
    expect(sequences.statistics.observe()).toMatchObject({ pending: 0, failures: { CANCELED: 2 } });
  });

  it("gives up all of a sequence without a slot when one of its requests is cancelled", async () => {
    const sequences = oneSlot();
    const [, b1, b2] = await sequences.sayAll("<a1>", "<b1", "b2", "<c1>");
    b2?.call.cancel();
    expect(b1?.sink.error?.code).toBe("CANCELLED");
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1", "c1"]);
  });

  it("ends the sequences that an instance forgot when it died", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1");
    await sequences.finishLast();
    const [b1, b2] = await sequences.sayAll("<b1", "b2");
    sequences.instances.executions[1]?.fail(new InferenceError(StatusCode.Unavailable, "died"));
    await turn();
    expect([b1?.sink.error?.message, b2?.sink.error?.message]).toEqual(["died", "died"]);
    for (const name of ["a", "b"]) {
      expect(sequences.say(`${name}9`).sink.error?.message).toBe(startError(name));
    }
  });

  it("spreads sequences over the instances, and keeps each on its own", async () => {
    const sequences = stand({ instances: 2 });
    await sequences.sayAll("<a1", "<b1");
    await sequences.finish(1);
    await sequences.finish(0);
    await sequences.sayAll("b2", "a2");
    const places = sequences.instances.executions.map(({ ids, instance }) => [ids, instance]);
    const [first, second] = sequences.instances.instances.map(({ name }) => name);
    expect(places.slice(0, 2)).toEqual([
      ["a1", first],
      ["b1", second],
    ]);
    expect(new Map(places.slice(2).map(([ids = "", place]) => [ids, place]))).toEqual(
      new Map([
        ["a2", first],
        ["b2", second],
      ]),
    );
  });

  it("finishes what it has when it is told to stop, and waits for no END", async () => {
    const sequences = oneSlot();
    const sent = await sequences.sayAll("<a1", "<b1", "a2", "b2");
    const stopped = sequences.scheduler.stop();
    for (let i = 0; i < 4; i++) await sequences.finishLast();
    await stopped;
    expect(sequences.ran).toEqual(["a1", "a2", "b1", "b2"]);
    expect(sent.every(({ sink }) => sink.responses.length === 1)).toBe(true);
    expect(sequences.clock.timers).toBe(0);
  });

  it("stops at once when its sequences are idle", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1");
    await sequences.finishLast();
    await sequences.scheduler.stop();
    expect(sequences.clock.timers).toBe(0);
  });
}
