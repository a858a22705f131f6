import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { EnsembleScheduler } from "../../../serving/ensemble/ensemble-scheduler.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { KeptAnswers, pendingRequest, requestFor } from "../../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { held, type HeldMember, step } from "./held-member.ts";

const decoupled = { modelTransactionPolicy: { decoupled: true } };

class SlowReader extends KeptAnswers {
  room: Promise<void> | undefined;
  /** Numbers, and what was the end. */
  readonly seen: (number | string)[] = [];

  override send(...[response, final]: Parameters<KeptAnswers["send"]>): void {
    super.send(response, final);
    const bytes = response?.outputs[0]?.bytes;
    if (bytes) this.seen.push(new Float32Array(bytes.slice().buffer)[0] ?? -1);
    if (final) this.seen.push(response ? "final" : "empty final");
  }

  override fail(error: InferenceError): void {
    super.fail(error);
    this.seen.push(error.message);
  }
}

interface Stand {
  readonly scheduler: EnsembleScheduler;
  readonly statistics: ModelStatisticsRecorder;
  /** A request on its way. */
  readonly sink: SlowReader;
  readonly cancel: () => void;
}

/** IN goes through the members one after the other. */
function chain(members: readonly HeldMember[], maxInflightRequests = 0): Stand {
  const names = ["IN", ...members.slice(1).map((_, i) => `t${i}`), "OUT"];
  const steps = members.map(({ version }, i) =>
    step(version.model.name, { A: names[i] ?? "" }, { Y: names[i + 1] ?? "" }),
  );
  const model = servedModel("e", {
    platform: "ensemble",
    maxBatchSize: 8,
    input: [modelInput("IN", "TYPE_FP32", [1])],
    output: [modelOutput("OUT", "TYPE_FP32", [1])],
    ensembleScheduling: { step: steps, maxInflightRequests },
    ...decoupled,
  });
  const statistics = new ModelStatisticsRecorder({ name: "e", version: "1", tags: {} });
  const versions = members.map(({ version }) => version);
  const clock = new FakeClock();
  const scheduler = new EnsembleScheduler(model, versions, { statistics, clock });
  const sink = new SlowReader();
  const pending = { ...pendingRequest(requestFor(model, [1, 1])), sink };
  scheduler.enqueue(pending);
  return { scheduler, statistics, sink, cancel: () => pending.call.cancel() };
}

describe("A step of an ensemble that answers many times", () => {
  it("sends each response through the steps behind it, and keeps their order", () => {
    const [many, next] = [held("many", decoupled), held("next")];
    const { sink, scheduler, statistics } = chain([many, next]);
    for (const value of [1, 2, 3]) many.respond({ Y: value }, value === 3);
    expect(next.taken.map(({ request }) => request.inputs[0]?.bytes[3])).toEqual([63, 64, 64]);
    const [first, second, third] = next.taken;
    next.answer({ Y: 30 }, [1, 1], third);
    next.answer({ Y: 20 }, [1, 1], second);
    expect(sink.seen).toEqual([]);
    next.answer({ Y: 10 }, [1, 1], first);
    expect(sink.seen).toEqual([10, 20, 30, "final"]);
    expect([scheduler.inflight, statistics.snapshot().inferenceStats.success.count]).toEqual([
      0, 1,
    ]);
  });

  it("may be the last one, answer never, or say later that it is over", () => {
    const many = held("many", decoupled);
    const none = chain([many]);
    many.last.sink.send(undefined, true);
    expect(none.sink.seen).toEqual(["empty final"]);
    const two = chain([many]);
    many.respond({ Y: 1 }, false);
    many.respond({ Y: 2 }, false);
    expect(two.sink.seen).toEqual([1, 2]);
    many.last.sink.send(undefined, true);
    expect(two.sink.seen).toEqual([1, 2, "empty final"]);
  });

  it("may stand before another one", () => {
    const [outer, inner, end] = [held("outer", decoupled), held("inner", decoupled), held("end")];
    const { sink } = chain([outer, inner, end]);
    outer.respond({ Y: 1 }, false);
    outer.respond({ Y: 2 }, true);
    const [first, second] = inner.taken;
    inner.respond({ Y: 21 }, true, second);
    inner.respond({ Y: 11 }, false, first);
    for (const pending of end.taken.toReversed())
      end.answer({ Y: pending.request.inputs[0]?.bytes[2] ?? 0 }, [1, 1], pending);
    expect(sink.seen).toEqual([48]);
    first?.sink.send(undefined, true);
    expect(sink.seen).toEqual([48, 168, "final"]);
  });

  it("fails the request behind the answers that came before", () => {
    const [many, next] = [held("many", decoupled), held("next")];
    const { sink, statistics, scheduler } = chain([many, next]);
    many.respond({ Y: 1 }, false);
    many.last.sink.fail(new InferenceError(StatusCode.Unavailable, "enough"));
    expect(sink.seen).toEqual([]);
    next.answer({ Y: 10 });
    expect(sink.seen).toEqual([10, "in ensemble 'e', enough"]);
    expect([scheduler.inflight, statistics.observe().failures.OTHER]).toEqual([0, 1]);
  });

  it("is taken back, with all that came of it, when a step behind it fails", () => {
    const [many, next] = [held("many", decoupled), held("next")];
    const { sink } = chain([many, next]);
    for (const value of [1, 2, 3]) many.respond({ Y: value }, false);
    const [first, second, third] = next.taken;
    second?.sink.fail(new InferenceError(StatusCode.Internal, "two"));
    expect(sink.seen).toEqual([]);
    next.answer({ Y: 10 }, [1, 1], first);
    expect(sink.seen).toEqual([10, "in ensemble 'e', two"]);
    for (const one of [many.last, third])
      expect(one?.call.cancelled?.message).toContain("in ensemble 'e', two");
  });

  it("is taken back with all that came of it when nobody waits any more", () => {
    const [many, next] = [held("many", decoupled), held("next")];
    const { cancel, scheduler } = chain([many, next]);
    many.respond({ Y: 1 }, false);
    cancel();
    expect([many.last, next.last].map(({ call }) => call.cancelled?.code)).toEqual([
      "CANCELLED",
      "CANCELLED",
    ]);
    expect(scheduler.inflight).toBe(0);
  });

  it("waits while too many of its responses are on their way, or the client is behind", () => {
    const [many, next] = [held("many", decoupled), held("next")];
    const { sink } = chain([many, next], 2);
    many.respond({ Y: 1 }, false);
    expect(many.last.sink.room).toBeUndefined();
    many.respond({ Y: 2 }, false);
    expect(many.last.sink.room).toBeDefined();
    next.answer({ Y: 10 }, [1, 1], next.taken[0]);
    expect(many.last.sink.room).toBeUndefined();
    sink.room = Promise.resolve();
    expect(many.last.sink.room).toBe(sink.room);
  });
});
