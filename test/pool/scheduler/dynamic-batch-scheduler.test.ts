import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { Tensor } from "../../../protocol/tensor.ts";
import { dynamicStand } from "../../helpers/dynamic-batching.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { modelInput } from "../../helpers/served-model.ts";
import { schedulerCases } from "./scheduler-cases.ts";

function tensor(name: string, size: number): Tensor {
  return { name, datatype: "FP32", shape: [1, size], bytes: new Uint8Array(4 * size) };
}

describe("dynamicBatchScheduler with preserve_ordering", () => {
  schedulerCases(() => dynamicStand({ maxBatchSize: 1, preserveOrdering: true }));
});

describe("dynamicBatchScheduler", () => {
  schedulerCases(() => dynamicStand({ maxBatchSize: 1 }));

  it("joins the requests of one turn into one execution", async () => {
    const stand = dynamicStand();
    const sent = await stand.send("a", "b", "c");
    expect(stand.ran).toEqual(["a+b+c"]);
    await stand.finish(0);
    expect(sent.map(({ sink }) => sink.responses[0]?.id)).toEqual(["a", "b", "c"]);
  });

  it("joins what came while every instance was busy", async () => {
    const stand = dynamicStand();
    await stand.send("a");
    await stand.send("b");
    await stand.send("c");
    await stand.finish(0);
    expect(stand.ran).toEqual(["a", "b+c"]);
  });

  it("never lets a batch grow over max_batch_size", async () => {
    const stand = dynamicStand({ instances: 3 });
    stand.enqueue("a", [3, 4]);
    stand.enqueue("b", [4, 4]);
    stand.enqueue("c", [2, 4]);
    stand.enqueue("d", [8, 4]);
    await turn();
    expect(stand.ran).toEqual(["a+b", "c", "d"]);
  });

  it("forms as many executions in a turn as there is room for", async () => {
    const stand = dynamicStand({ maxBatchSize: 2, instances: 2 });
    await stand.send("a", "b", "c", "d", "e");
    expect(stand.ran).toEqual(["a+b", "c+d"]);
  });

  it("runs at the largest preferred_batch_size it has and leaves the rest for the next", async () => {
    const stand = dynamicStand({ preferredBatchSize: [2, 4], instances: 2 });
    await stand.send("a", "b", "c", "d", "e");
    expect(stand.ran).toEqual(["a+b+c+d", "e"]);
  });

  it("leaves those behind who are too few for the next preferred size", async () => {
    const stand = dynamicStand({
      preferredBatchSize: [2, 8],
      maxQueueDelayMicroseconds: 1000,
      instances: 2,
    });
    await stand.send("a", "b", "c");
    expect(stand.ran).toEqual(["a+b"]);
    await stand.clock.advance(1);
    expect(stand.ran).toEqual(["a+b", "c"]);
  });

  it("sends a preferred batch before max_queue_delay_microseconds has passed", async () => {
    const stand = dynamicStand({ preferredBatchSize: [4], maxQueueDelayMicroseconds: 1000 });
    await stand.send("a", "b", "c");
    expect(stand.ran).toEqual([]);
    await stand.send("d");
    expect(stand.ran).toEqual(["a+b+c+d"]);
  });

  it("sends what it has when no preferred size can be met any more", async () => {
    const stand = dynamicStand({ preferredBatchSize: [4], maxQueueDelayMicroseconds: 1000 });
    stand.enqueue("a", [3, 4]);
    await turn();
    expect(stand.ran).toEqual([]);
    stand.enqueue("b", [2, 4]);
    await turn();
    expect(stand.ran).toEqual(["a"]);
  });

  it("sends a partial batch when max_queue_delay_microseconds has passed for the oldest", async () => {
    const stand = dynamicStand({ maxQueueDelayMicroseconds: 1000 });
    await stand.send("a");
    await stand.clock.advance(0.6);
    await stand.send("b");
    await stand.clock.advance(0.3);
    expect(stand.ran).toEqual([]);
    await stand.clock.advance(0.1);
    expect(stand.ran).toEqual(["a+b"]);
  });

  it("sends everybody who waits, preferred size or not, once the delay has passed", async () => {
    const stand = dynamicStand({ preferredBatchSize: [2], maxQueueDelayMicroseconds: 1000 });
    await stand.send("busy", "busy");
    await stand.send("a", "b", "c");
    await stand.clock.advance(1);
    await stand.finish(0);
    expect(stand.ran).toEqual(["busy+busy", "a+b+c"]);
  });

  it("keeps to max_batch_size however late it is", async () => {
    const stand = dynamicStand({
      maxBatchSize: 3,
      preferredBatchSize: [2],
      maxQueueDelayMicroseconds: 1000,
    });
    await stand.send("busy", "busy");
    await stand.send("a", "b", "c", "d", "e");
    await stand.clock.advance(1);
    await stand.finish(0);
    expect(stand.ran).toEqual(["busy+busy", "a+b+c"]);
  });

  it("counts the delay from the request that is the oldest after a cancellation", async () => {
    const stand = dynamicStand({ maxQueueDelayMicroseconds: 1000 });
    const [a] = await stand.send("a");
    await stand.clock.advance(0.6);
    await stand.send("b");
    a?.call.cancel();
    await stand.clock.advance(0.9);
    expect(stand.ran).toEqual([]);
    await stand.clock.advance(0.1);
    expect(stand.ran).toEqual(["b"]);
  });

  it("forgets a cancelled request when it counts the items of a batch", async () => {
    const stand = dynamicStand({ preferredBatchSize: [3], maxQueueDelayMicroseconds: 1000 });
    const [, b] = await stand.send("a", "b");
    b?.call.cancel();
    await stand.send("c");
    expect(stand.ran).toEqual([]);
    await stand.send("d");
    expect(stand.ran).toEqual(["a+c+d"]);
  });

  it("closes a batch before an input of another size", async () => {
    const input = [modelInput("IN", "TYPE_FP32", [-1])];
    const stand = dynamicStand({ input, maxQueueDelayMicroseconds: 1000, instances: 2 });
    stand.enqueue("a", [1, 4]);
    stand.enqueue("b", [2, 4]);
    stand.enqueue("c", [1, 5]);
    stand.enqueue("d", [1, 4]);
    await turn();
    expect(stand.ran).toEqual(["a+b", "c"]);
  });

  it("joins inputs of any size where they may be ragged", async () => {
    const input = [modelInput("IN", "TYPE_FP32", [-1], { allowRaggedBatch: true })];
    const stand = dynamicStand({ input });
    stand.enqueue("a", [1, 4]);
    stand.enqueue("b", [2, 5]);
    await turn();
    expect(stand.ran).toEqual(["a+b"]);
  });

  it("closes a batch before another set of optional inputs", async () => {
    const input = [
      modelInput("IN", "TYPE_FP32", [4]),
      modelInput("X", "TYPE_FP32", [1], { optional: true }),
      modelInput("Y", "TYPE_FP32", [1], { optional: true }),
    ];
    const stand = dynamicStand({ input, instances: 4 });
    const x = [tensor("IN", 4), tensor("X", 1)];
    stand.enqueue("a");
    stand.enqueue("b", undefined, { inputs: x });
    stand.enqueue("c", undefined, { inputs: x.toReversed() });
    stand.enqueue("d", undefined, { inputs: [tensor("IN", 4), tensor("Y", 1)] });
    stand.enqueue("e");
    await turn();
    expect(stand.ran).toEqual(["a", "b+c", "d", "e"]);
  });

  it("keeps the order of arrival where a batch fails and its requests run apart", async () => {
    const stand = dynamicStand({ maxBatchSize: 2, instances: 2, preserveOrdering: true });
    const [a, b, c] = await stand.send("a", "b", "c");
    stand.instances.executions[0]?.fail(new InferenceError(StatusCode.Internal, "no luck"));
    await stand.finish(1);
    expect(stand.ran).toEqual(["a+b", "c", "a", "b"]);
    expect(c?.sink.ended).toBe(false);
    await stand.finish(2);
    stand.instances.executions[3]?.fail(new InferenceError(StatusCode.Internal, "no luck"));
    await turn();
    expect([a?.sink.error, b?.sink.error?.message]).toEqual([undefined, "no luck"]);
    expect(c?.sink.responses).toHaveLength(1);
  });

  it("lets a fast instance overtake a slow one by default", async () => {
    const stand = dynamicStand({ maxBatchSize: 1, instances: 2 });
    const [a, b] = await stand.send("a", "b");
    await stand.finish(1);
    expect([a?.sink.ended, b?.sink.ended]).toEqual([false, true]);
  });

  it("answers in the order of arrival across instances with preserve_ordering", async () => {
    const stand = dynamicStand({ maxBatchSize: 1, instances: 3, preserveOrdering: true });
    const [a, b, c] = await stand.send("a", "b", "c");
    await stand.finish(2);
    await stand.finish(1);
    expect([a?.sink.ended, b?.sink.ended, c?.sink.ended]).toEqual([false, false, false]);
    await stand.finish(0);
    expect([a?.sink.ended, b?.sink.ended, c?.sink.ended]).toEqual([true, true, true]);
  });
});
