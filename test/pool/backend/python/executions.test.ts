import { describe, expect, it } from "vitest";
import { Executions } from "../../../../pool/backend/python/executions.ts";
import { instancesId } from "../../../../pool/instance/instances-id.ts";
import { anonymous } from "../../../../protocol/call.ts";
import { InferenceError, StatusCode } from "../../../../protocol/error.ts";
import { noParameters } from "../../../../protocol/parameters.ts";
import { StepTimes, StepTrace } from "../../../../serving/ensemble/step-trace.ts";
import {
  KeptAnswers,
  pendingRequest,
  requestFor,
  type SentRequest,
} from "../../../helpers/requests.ts";
import { modelInput, servedModel } from "../../../helpers/served-model.ts";

const model = servedModel("m", {
  maxBatchSize: 8,
  input: [modelInput("IN", "TYPE_FP32", [4])],
});
const timings = {
  computeInputNanoseconds: 1,
  computeInferNanoseconds: 2,
  computeOutputNanoseconds: 3,
};
const output = { name: "OUT", datatype: "FP32", shape: [1], bytes: new Uint8Array(4) } as const;
const answer = { outputs: [output], parameters: noParameters };
const broken = new InferenceError(StatusCode.Internal, "broken");

function request(id: string): SentRequest {
  return pendingRequest(requestFor(model, [1, 4], { id }));
}

function of(tenant: string): SentRequest {
  const sent = request(tenant);
  sent.call.principal = { name: tenant, tenant };
  return sent;
}

const more = { response: answer, final: false, bytes: 0 };
const last = { ...more, final: true };

function opened(onRead: (request: number, bytes: number) => void = () => {}): Executions {
  return new Executions({ model, reshape: (tensor) => tensor, onRead });
}

class SlowReader extends KeptAnswers {
  room: Promise<void> | undefined;
}

describe("Executions", () => {
  it("answers each request of a batch and settles with what the batch took", async () => {
    const executions = opened();
    const [a, b] = [request("a"), request("b")];
    const { number, done } = executions.begin([a, b]);
    expect(executions.running).toBe(1);
    executions.returned(number, timings, [
      [0, answer],
      [1, { error: broken }],
    ]);
    expect(await done).toEqual(timings);
    expect(a.sink.responses.map(({ id, outputs }) => [id, outputs])).toEqual([["a", [output]]]);
    expect(b.sink.error).toBe(broken);
    expect([executions.running, executions.open]).toEqual([0, 0]);
  });

  it("settles only when a request that goes on has its final response", async () => {
    const executions = opened();
    const a = request("a");
    const { number, requestNumbers, done } = executions.begin([a]);
    const [own = -1] = requestNumbers;
    let settled = false;
    void done.then(() => (settled = true));
    executions.returned(number, timings, []);
    executions.respond(own, more);
    executions.respond(own, more);
    await Promise.resolve();
    expect([settled, executions.running, executions.open]).toEqual([false, 0, 1]);
    executions.respond(own, { ...last, response: undefined });
    await done;
    expect(a.sink.responses).toHaveLength(2);
    expect(a.sink.ended).toBe(true);
  });

  it("rejects a batch that has failed before any answer", async () => {
    const executions = opened();
    const a = request("a");
    const { number, done } = executions.begin([a]);
    executions.failed(number, timings, broken);
    await expect(done).rejects.toBe(broken);
    expect(a.sink.ended).toBe(false);
  });

  it("fails what is not answered when a batch fails in the middle", async () => {
    const executions = opened();
    const [a, b] = [request("a"), request("b")];
    const { number, requestNumbers, done } = executions.begin([a, b]);
    executions.respond(requestNumbers[0] ?? -1, last);
    executions.failed(number, timings, broken);
    await done;
    expect(a.sink.error).toBeUndefined();
    expect(b.sink.error).toBe(broken);
  });

  it("gives nobody an answer that comes too late", async () => {
    const executions = opened();
    const first = executions.begin([request("a")]);
    executions.failed(first.number, timings, broken);
    await expect(first.done).rejects.toBe(broken);
    const b = request("b");
    const second = executions.begin([b]);
    executions.respond(first.requestNumbers[0] ?? -1, last);
    expect(b.sink.ended).toBe(false);
    executions.respond(second.requestNumbers[0] ?? -1, last);
    expect(b.sink.responses.map(({ id }) => id)).toEqual(["b"]);
  });

  it("fails a request whose model has thrown away the way to answer it", async () => {
    const executions = opened();
    const a = request("a");
    const { number, requestNumbers, done } = executions.begin([a]);
    executions.returned(number, timings, []);
    executions.dropped(requestNumbers[0] ?? -1);
    await done;
    expect(a.sink.error?.message).toBe(
      "model 'm' has let go of the request without a final response",
    );
  });

  it("tells of what is read once it is much, at the end, and never before the reader has room", async () => {
    const read: (readonly [number, number])[] = [];
    const executions = opened((number, bytes) => read.push([number, bytes]));
    const room = Promise.withResolvers<void>();
    const sink = new SlowReader();
    const { number, requestNumbers } = executions.begin([{ ...request("a"), sink }]);
    const [own = -1] = requestNumbers;
    executions.respond(own, { ...more, bytes: 40_000 });
    expect(read).toEqual([]);
    executions.respond(own, { ...more, bytes: 40_000 });
    expect(read).toEqual([[own, 80_000]]);
    sink.room = room.promise;
    executions.respond(own, { ...more, bytes: 70_000 });
    await Promise.resolve();
    expect(read).toHaveLength(1);
    room.resolve();
    await room.promise;
    expect(read.slice(1)).toEqual([[own, 70_000]]);
    sink.room = undefined;
    executions.respond(own, { ...more, bytes: 600 });
    executions.respond(own, { ...last, response: undefined });
    executions.respond(own, { ...more, bytes: 700 });
    executions.returned(number, timings, []);
    expect(read.slice(2)).toEqual([
      [own, 600],
      [own, 700],
    ]);
  });

  it("tells a request that is traced what its execution took", () => {
    const executions = opened();
    const a = request("a");
    const times = new StepTimes();
    a.call.trace = new StepTrace(times, undefined);
    const { number } = executions.begin([a]);
    const took = { ...timings, computeInputNanoseconds: 2e6, computeInferNanoseconds: 4e6 };
    executions.returned(number, took, [[0, answer]]);
    expect(times.computeInputNanoseconds).toBeCloseTo(2e6, -3);
    expect(times.computeInferNanoseconds).toBeCloseTo(4e6, -3);
    expect(times.computeOutputNanoseconds).toBeGreaterThanOrEqual(timings.computeOutputNanoseconds);
    expect(a.sink.ended).toBe(true);
  });

  it("tells one that is answered while the execution goes on what it has taken until then", () => {
    const executions = opened();
    const a = request("a");
    const times = new StepTimes();
    a.call.trace = new StepTrace(times, undefined);
    const { requestNumbers } = executions.begin([a]);
    const began = performance.now();
    while (performance.now() < began + 2);
    executions.respond(requestNumbers[0] ?? -1, last);
    expect(times.computeInferNanoseconds).toBeGreaterThan(2e6);
    expect(a.sink.ended).toBe(true);
  });

  it("knows who waits for what its model asks of others", () => {
    const executions = opened();
    const outer = { id: "1", instances: "i", modelName: "outer", modelVersion: "1", depth: 1 };
    const [a, b] = [request("a"), request("b")];
    a.call.callers = [outer];
    // As it comes from another process.
    b.call.callers = [{ ...outer }];
    const { number } = executions.begin([a, b]);
    executions.begin([request("c")]);
    const own = { instances: instancesId(model), modelName: "m", modelVersion: "1" };
    const [first, second] = executions.callers;
    expect([first, second]).toEqual([outer, { ...own, id: expect.any(String), depth: 2 }]);
    expect(executions.callers).toEqual([first, second]);
    executions.returned(number, timings, []);
    const [next] = executions.callers;
    expect(next).toEqual({ ...own, id: expect.any(String), depth: 1 });
    expect(next?.id).not.toBe(second?.id);
  });

  it("knows on whose behalf its model asks others", () => {
    const executions = opened();
    const { number } = executions.begin([of("a"), of("a")]);
    expect(executions.principal(true).tenant).toBe("a");
    executions.begin([of("b")]);
    expect([executions.principal(true).tenant, executions.principal(false)]).toEqual([
      "a",
      anonymous,
    ]);
    executions.returned(number, timings, [
      [0, answer],
      [1, answer],
    ]);
    expect([executions.principal(true).tenant, executions.principal(false).tenant]).toEqual([
      "b",
      "b",
    ]);
    const mixed = opened();
    mixed.begin([of("a"), of("b")]);
    expect(mixed.principal(true)).toBe(anonymous);
  });

  it("gives back what the process has not begun, as it was", async () => {
    const executions = opened();
    const going = executions.begin([request("a")]);
    const [b, c] = [request("b"), request("c")];
    const waiting = executions.begin([b, c]);
    const unbegun = executions.takeUnbegun();
    expect(unbegun.map(({ requests }) => requests)).toEqual([[b, c]]);
    expect([executions.running, executions.open]).toEqual([1, 1]);
    executions.failAll(broken);
    await expect(going.done).rejects.toBe(broken);
    expect([b.sink.error, c.sink.error]).toEqual([undefined, undefined]);
    unbegun[0]?.resolve(timings);
    expect(await waiting.done).toBe(timings);
  });

  it("fails everything when the process is gone", async () => {
    const executions = opened();
    const going = executions.begin([request("a")]);
    const b = request("b");
    const streaming = executions.begin([b]);
    executions.returned(streaming.number, timings, []);
    executions.respond(streaming.requestNumbers[0] ?? -1, more);
    executions.failAll(broken);
    await expect(going.done).rejects.toBe(broken);
    await streaming.done;
    expect(b.sink.error).toBe(broken);
    expect(executions.open).toBe(0);
  });
});
