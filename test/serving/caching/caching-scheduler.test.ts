import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { InferenceRequest } from "../../../protocol/inference.ts";
import type { Shape } from "../../../protocol/shape.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { responseTo, type SentRequest } from "../../helpers/requests.ts";
import { schedulerCases } from "../../pool/scheduler/scheduler-cases.ts";
import { CachingStand } from "./caching-stand.ts";

/** What a request has been answered: its own id, an error, or nothing yet. */
function answer({ sink }: SentRequest): string {
  if (sink.error) return sink.error.message;
  return sink.ended ? sink.responses.map(({ id }) => id).join() : "waits";
}

function answers(...sent: readonly SentRequest[]): readonly string[] {
  return sent.map(answer);
}

const counted = { success: 0, fail: 0, hit: 0, miss: 0, queue: 0, compute: 0 };

/** Nothing is answered from the cache: it owes what is behind it. */
class UnequalRequests extends CachingStand {
  override prepare(id: string, shape?: Shape, more: Partial<InferenceRequest> = {}): SentRequest {
    return super.prepare(id, shape, { parameters: new Map([["which", id]]), ...more });
  }
}

describe("CachingScheduler", () => {
  describe("with unequal requests", () => {
    schedulerCases(() => new UnequalRequests());
  });

  it("runs a request once, and answers those after it with their own ids", async () => {
    const stand = new CachingStand();
    const first = await stand.ask("a");
    await stand.finish(0);
    const second = await stand.ask("b");
    expect(answers(first, second)).toEqual(["a", "b"]);
    expect(second.sink.responses[0]?.outputs).toEqual([
      { name: "OUT", datatype: "FP32", shape: [1, 4], bytes: Buffer.alloc(16) },
    ]);
    expect(stand.ran).toEqual(["a"]);
  });

  it("answers from the cache before enqueue returns", async () => {
    const stand = new CachingStand();
    await stand.ask("a");
    await stand.finish(0);
    expect(answer(stand.enqueue("b"))).toBe("b");
  });

  it("counts hits and misses as the reference does", async () => {
    const stand = new CachingStand();
    await stand.ask("a");
    await stand.clock.advance(5);
    await stand.finish(0);
    expect(stand.counts).toEqual({ ...counted, success: 1, miss: 1, queue: 1, compute: 1 });
    await stand.ask("b");
    await stand.ask("c");
    const both = { success: 3, fail: 0, hit: 2, miss: 1, queue: 3, compute: 1 };
    expect(stand.counts).toEqual(both);
    const { inferenceCount, executionCount } = stand.statistics.snapshot();
    expect([inferenceCount, executionCount]).toEqual([1, 1]);
  });

  it("runs unequal requests each", async () => {
    const stand = new CachingStand();
    await stand.ask("a");
    await stand.ask("b", { parameters: new Map([["temperature", 1]]) });
    await stand.finish(0);
    expect(stand.ran).toEqual(["a", "b"]);
  });

  it("keeps no failure", async () => {
    const stand = new CachingStand();
    const first = await stand.ask("a");
    stand.instances.executions[0]?.fail(new InferenceError(StatusCode.Internal, "broken"));
    await turn();
    await stand.ask("b");
    expect(answer(first)).toContain("broken");
    expect(stand.ran).toEqual(["a", "b"]);
    expect(stand.counts).toEqual({ ...counted, fail: 1 });
  });

  it("lets requests of sequences pass", async () => {
    const stand = new CachingStand();
    const sequence = { id: 5n, start: true, end: false };
    for (const id of ["a", "b"]) {
      await stand.ask(id, { sequence });
      await stand.finish(stand.ran.length - 1);
    }
    expect(stand.ran).toEqual(["a", "b"]);
    expect(stand.counts).toMatchObject({ hit: 0, miss: 0 });
  });

  it("runs a request anew that asks for it, and keeps the new answer", async () => {
    const stand = new CachingStand();
    await stand.ask("a");
    await stand.finish(0);
    const fresh = await stand.ask("b", { cacheControl: "no-cache" });
    expect(stand.ran).toEqual(["a", "b"]);
    const bytes = Buffer.alloc(16, 5);
    const outputs = [{ name: "OUT", datatype: "FP32", shape: [1, 4], bytes }] as const;
    stand.instances.executions[1]?.requests[0]?.sink.send(
      { ...responseTo(fresh.request), outputs },
      true,
    );
    const after = await stand.ask("c");
    expect(after.sink.responses[0]?.outputs[0]?.bytes).toEqual(bytes);
    expect(stand.counts).toMatchObject({ hit: 1, miss: 1 });
  });

  it("keeps and tells nothing for a request that must not be stored", async () => {
    const stand = new CachingStand();
    const control: Partial<InferenceRequest> = { cacheControl: "no-store" };
    await stand.ask("a", control);
    await stand.finish(0);
    await stand.ask("b");
    await stand.finish(1);
    await stand.ask("c", control);
    expect(stand.ran).toEqual(["a", "b", "c"]);
  });

  it("asks for an answer outside of this process before it runs a request", async () => {
    const asked: string[] = [];
    const stand = new CachingStand({
      async get(model) {
        asked.push(model);
        const { id: _id, ...response } = responseTo(stand.prepare("").request);
        return { response, expiresAt: Date.now() + 60_000 };
      },
      set: () => {},
      flush: async () => {},
    });
    const [a, b] = [stand.enqueue("a"), stand.enqueue("b")];
    await stand.clock.advance(1);
    expect(answers(a, b, stand.enqueue("c"))).toEqual(["a", "b", "c"]);
    expect(asked).toEqual(["m"]);
    expect(stand.ran).toEqual([]);
    expect(stand.counts).toMatchObject({ success: 3, hit: 3 });
  });

  it("runs a request for those only who are still there when it was looked up", async () => {
    const found = Promise.withResolvers<undefined>();
    const stand = new CachingStand({
      get: () => found.promise,
      set: () => {},
      flush: async () => {},
    });
    const gone = stand.enqueue("a");
    gone.call.cancel();
    const after = stand.enqueue("b");
    found.resolve(undefined);
    await stand.clock.advance(1);
    expect(stand.ran).toEqual(["b"]);
    await stand.finish(0);
    expect(answers(gone, after)).toEqual(["[request id: a] request was cancelled", "b"]);
    expect(stand.counts).toMatchObject({ success: 1, fail: 1, miss: 1 });
  });

  it("closes its scheduler only when nothing is looked up outside any more", async () => {
    const found = Promise.withResolvers<undefined>();
    const stand = new CachingStand({
      get: () => found.promise,
      set: () => {},
      flush: async () => {},
    });
    const asked = stand.enqueue("a");
    const stopped = stand.scheduler.stop();
    found.resolve(undefined);
    await stand.clock.advance(1);
    await stand.finish(0);
    await stopped;
    expect(answer(asked)).toBe("a");
  });
});
