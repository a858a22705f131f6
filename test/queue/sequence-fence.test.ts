import { beforeEach, describe, expect, it } from "vitest";
import type { InferenceRequest } from "../../protocol/inference.ts";
import { SequenceFences } from "../../queue/sequence-fence.ts";
import { withPlace } from "../../queue/sequence-place.ts";
import type { CountedVersion } from "../../serving/running-version.ts";
import { eventually } from "../helpers/eventually.ts";
import { FakeClock, turn } from "../helpers/fake-clock.ts";
import { HandHeldInstances } from "../helpers/hand-held-instances.ts";
import { countedVersion, idleMilliseconds, statefulModel } from "../helpers/queue-stand.ts";
import { pendingRequest, requestFor, type SentRequest } from "../helpers/requests.ts";

const startError = `inference request for sequence 7 to model '${statefulModel}' must specify the START flag on the first request of the sequence`;

describe("SequenceFences", () => {
  let clock: FakeClock;
  let fences: SequenceFences;
  let instances: HandHeldInstances;
  let version: CountedVersion;
  beforeEach(() => {
    clock = new FakeClock();
    fences = new SequenceFences(clock);
    instances = new HandHeldInstances(8);
    version = countedVersion(statefulModel, instances);
  });

  it("lets a sequence pass whose requests come in their order, and shows the model nothing of its own", async () => {
    for (const number of [0, 1, 2]) {
      const sent = await run(`${number}`, "x", number, { start: number === 0, end: number === 2 });
      expect(sent.sink.responses).toHaveLength(1);
      expect(fences.open).toBe(number === 2 ? 0 : 1);
    }
    expect(instances.ran).toEqual(["0", "1", "2"]);
    const seen = instances.executions.flatMap(({ requests }) => requests);
    expect(seen.map(({ request }) => request.parameters.size)).toEqual([0, 0, 0]);
  });

  it("runs nothing twice", async () => {
    await run("start", "x", 0, { start: true });
    expect(await refusalOf("start again", "x", 0, { start: true })).toBe(startError);
    await run("next", "x", 1);
    expect(await refusalOf("next again", "x", 1)).toBe(startError);
    await run("last", "x", 2);
  });

  it("ends a sequence of which a request is missing", async () => {
    await run("start", "x", 0, { start: true });
    expect(await refusalOf("third", "x", 2)).toBe(startError);
    expect(await refusalOf("second", "x", 1)).toBe(startError);
    expect(instances.ran).toEqual(["start"]);
    expect(fences.open).toBe(0);
  });

  it("keeps a request from a sequence that another START has begun", async () => {
    await run("start", "x", 0, { start: true });
    await run("new start", "y", 0, { start: true });
    expect(await refusalOf("of the old one", "x", 1)).toBe(startError);
    await run("of the new one", "y", 1);
  });

  it("keeps requests that no gateway has placed from all sequences", async () => {
    await run("start", "x", 0, { start: true });
    expect(await refusalOf("unplaced")).toBe(startError);
    await run("next", "x", 1);
    await run("alone", undefined, 0, { start: true, end: true });
    expect(await refusalOf("after", "x", 2)).toBe(startError);
  });

  it("keeps requests of a START that was refused from the sequence before it", async () => {
    await run("start", "x", 0, { start: true });
    const stopping = version.scheduler.stop();
    const refused = give("new start", "y", 0, { start: true });
    expect(refused.sink.error?.message).toContain("is being unloaded");
    expect(await refusalOf("next", "y", 1)).toBe(startError);
    await stopping;
  });

  it("forgets a sequence that is idle for as long as the model allows, and not one whose request runs", async () => {
    await run("start", "x", 0, { start: true });
    await clock.advance(idleMilliseconds);
    expect(fences.open).toBe(1);
    const running = give("next", "x", 1);
    await clock.advance(2 * idleMilliseconds);
    expect(fences.open).toBe(1);
    await finish("next");
    expect(running.sink.ended).toBe(true);
    await clock.advance(idleMilliseconds + 1);
    expect(fences.open).toBe(0);
    expect(await refusalOf("late", "x", 2)).toBe(startError);
  });

  it("knows nothing of a version that was started anew", async () => {
    await run("start", "x", 0, { start: true });
    version = countedVersion(statefulModel, instances);
    expect(await refusalOf("next", "x", 1)).toBe(startError);
  });

  function give(
    id: string,
    token?: string,
    number = 0,
    { start = false, end = false } = {},
  ): SentRequest {
    const more: Partial<InferenceRequest> = { id, sequence: { id: 7n, start, end } };
    const request = requestFor(version.model, [4], more);
    const sent = pendingRequest(
      token === undefined ? request : withPlace(request, { token, number }),
    );
    fences.guarded(version).scheduler.enqueue(sent);
    return sent;
  }

  /** The same for one that has to run. */
  async function run(...args: Parameters<typeof give>): Promise<SentRequest> {
    const sent = give(...args);
    await finish(args[0]);
    expect(sent.sink).toMatchObject({ ended: true, error: undefined });
    return sent;
  }

  /** The execution of the named request, which is the last one. */
  async function finish(id: string): Promise<void> {
    await eventually(() => expect(instances.ran.at(-1)).toBe(id));
    instances.executions.at(-1)?.finish();
    // The scheduler sees the room that is free again.
    await turn();
  }

  async function refusalOf(...args: Parameters<typeof give>): Promise<string | undefined> {
    const { sink } = give(...args);
    await turn();
    expect(instances.ran.at(-1)).not.toBe(args[0]);
    return sink.error?.message;
  }
});
