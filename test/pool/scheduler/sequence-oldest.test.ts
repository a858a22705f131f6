import { describe, expect, it } from "vitest";
import { turn } from "../../helpers/fake-clock.ts";
import { sequenceCases } from "./sequence-cases.ts";
import { SequenceStand, type GivenSequences } from "./sequence-stand.ts";

const noDelay = {
  maxCandidateSequences: 0,
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
};

const stand = ({
  oldest,
  ...given
}: Omit<GivenSequences, "oldest"> & {
  readonly oldest?: Partial<GivenSequences["oldest"]>;
} = {}): SequenceStand => new SequenceStand({ oldest: { ...noDelay, ...oldest }, ...given });

describe("sequenceBatchScheduler with the oldest strategy", () => {
  sequenceCases({ oldest: noDelay });

  it("joins one request of each sequence, without gaps", async () => {
    const sequences = stand();
    await sequences.sayAll("<a1", "a2", "<b1", "<c1");
    expect(sequences.ran).toEqual(["a1+b1+c1"]);
    await sequences.sayAll("c2", "b2");
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1+b1+c1", "a2+b2+c2"]);
  });

  it("keeps more sequences going than fit into a batch, oldest first", async () => {
    const sequences = stand({ maxBatchSize: 2, oldest: { maxCandidateSequences: 3 } });
    await sequences.sayAll("<a1", "<b1", "<c1", "<d1");
    await sequences.finishLast();
    await sequences.sayAll("a2", "b2");
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1+b1", "c1", "a2+b2"]);
    await sequences.sayAll("b3>");
    await sequences.finishLast();
    await sequences.finishLast();
    expect(sequences.ran.slice(3)).toEqual(["b3", "d1"]);
  });

  it("has as many candidates as a batch has rows when the config names no number", async () => {
    const sequences = stand({ maxBatchSize: 2, instances: 1 });
    await sequences.sayAll("<a1", "<b1", "<c1");
    await sequences.finishLast();
    expect(sequences.ran).toEqual(["a1+b1"]);
  });

  it("waits for a preferred_batch_size up to max_queue_delay_microseconds", async () => {
    const sequences = stand({
      oldest: { preferredBatchSize: [2], maxQueueDelayMicroseconds: 1000 },
    });
    await sequences.sayAll("<a1");
    expect(sequences.ran).toEqual([]);
    await sequences.sayAll("<b1");
    expect(sequences.ran).toEqual(["a1+b1"]);
    await sequences.finishLast();
    await sequences.sayAll("a2");
    await sequences.clock.advance(1);
    expect(sequences.ran).toEqual(["a1+b1", "a2"]);
  });

  it("ends a sequence whose request is cancelled while it waits to be joined", async () => {
    const sequences = stand({
      oldest: { preferredBatchSize: [2], maxQueueDelayMicroseconds: 1000 },
    });
    const [a1, a2] = await sequences.sayAll("<a1", "a2");
    a1?.call.cancel();
    expect([a1?.sink.error?.message, a2?.sink.error?.message]).toEqual([
      "[request id: a1] request was cancelled",
      "[request id: a2] request was cancelled",
    ]);
    expect(sequences.say("a3").sink.error?.message).toContain("must specify the START flag");
  });

  it("answers in the order of arrival with preserve_ordering", async () => {
    const sequences = stand({
      maxBatchSize: 1,
      oldest: { maxCandidateSequences: 2, preserveOrdering: true },
    });
    const [a1, b1] = await sequences.sayAll("<a1", "<b1");
    sequences.instances.makeRoom();
    await turn();
    expect(sequences.ran).toEqual(["a1", "b1"]);
    await sequences.finish(1);
    expect(b1?.sink.ended).toBe(false);
    await sequences.finish(0);
    expect([a1?.sink.responses.length, b1?.sink.responses.length]).toEqual([1, 1]);
  });
});
