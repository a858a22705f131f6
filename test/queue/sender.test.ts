import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import { names } from "../../queue/names.ts";
import { openQueue } from "../../queue/pool-link.ts";
import { encodeReplies, encodeReply, type Reply } from "../../queue/reply-frame.ts";
import type { RunningVersion } from "../../serving/running-version.ts";
import { eachStand } from "../helpers/each-stand.ts";
import { eventually } from "../helpers/eventually.ts";
import {
  openEnvelopes,
  prepare,
  type QueueStand,
  send,
  type StandGateway,
} from "../helpers/queue-stand.ts";
import { responseTo, type SentRequest } from "../helpers/requests.ts";

describe("Sender", () => {
  let stand: QueueStand;
  let gateway: StandGateway;
  let version: RunningVersion;
  eachStand(async (opened) => {
    stand = opened;
    gateway = await stand.gateway();
    version = await stand.serve(gateway);
  });

  const envelopes = (): Promise<number[]> => openEnvelopes(stand);

  /** Says what a pool worker would say to the request that was sent first. */
  async function reply(said: Pick<Reply, "number" | "final" | "outcome">): Promise<void> {
    const bundle = encodeReply({ envelope: `${gateway.name}-0`, index: 0, ...said });
    await stand.commands.rpush(names.replies(gateway.name), bundle);
  }

  it("puts requests of one turn into one envelope", async () => {
    for (let i = 0; i < 5; i++) send(version);
    await eventually(async () => expect(await envelopes()).toEqual([5]));
  });

  it("gives each tenant and each version an envelope of its own", async () => {
    const other = await stand.serve(gateway, "other");
    send(version);
    send(version, {}, "somebody");
    send(other);
    send(version);
    await eventually(async () => expect(await envelopes()).toEqual([2, 1, 1]));
  });

  it("bounds the requests of an envelope", async () => {
    for (let i = 0; i < 130; i++) send(version);
    await eventually(async () => expect(await envelopes()).toEqual([64, 64, 2]));
  });

  it("gives one pool worker no more than twice what it should have in hand", async () => {
    const few = await stand.serve(await stand.gateway(2));
    for (let i = 0; i < 10; i++) send(few);
    await eventually(async () => expect(await envelopes()).toEqual([4, 4, 2]));
  });

  it("bounds the bytes of an envelope", async () => {
    const bytes = new Uint8Array(900_000);
    const input = { name: "IN", datatype: "FP32", shape: [bytes.length / 4], bytes } as const;
    for (let i = 0; i < 20; i++) send(version, { inputs: [input] });
    await eventually(async () => expect(await envelopes()).toEqual([18, 2]));
  });

  it("hands on several responses that come in one piece with the end", async () => {
    const sent = send(version);
    await eventually(async () => expect(await envelopes()).toEqual([1]));
    const to = { envelope: `${gateway.name}-0`, index: 0 };
    const outcome = responseTo(sent.request);
    const bundles = encodeReplies([
      { ...to, number: 0, final: false, outcome },
      { ...to, number: 1, final: false, outcome },
      { ...to, number: 2, final: true },
    ]);
    await stand.commands.rpush(names.replies(gateway.name), ...bundles);
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(sent.sink.responses).toHaveLength(2);
  });

  it("hands on several responses in their order, and ends with the last", async () => {
    const sent = await written();
    const response = (id: string) => ({ ...responseTo(sent.request), id });
    await reply({ number: 0, final: false, outcome: response("a") });
    await reply({ number: 1, final: false, outcome: response("b") });
    await eventually(() => expect(idsOf(sent)).toEqual(["a", "b"]));
    expect(sent.sink.ended).toBe(false);
    await reply({ number: 2, final: true });
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(idsOf(sent)).toEqual(["a", "b"]);
    expect(version.scheduler.inflight).toBe(0);
  });

  it("drops replies that a second run says again", async () => {
    const sent = await written();
    const response = (id: string) => ({ ...responseTo(sent.request), id });
    await reply({ number: 0, final: false, outcome: response("a") });
    await reply({ number: 0, final: false, outcome: response("a again") });
    await reply({ number: 1, final: true, outcome: response("b") });
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(idsOf(sent)).toEqual(["a", "b"]);
  });

  it("drops what comes after the last reply, whatever it says", async () => {
    const sent = await written();
    const next = send(version);
    const error = new InferenceError(StatusCode.Internal, "too late");
    await reply({ number: 0, final: true, outcome: responseTo(sent.request) });
    await reply({ number: 1, final: true, outcome: error });
    await reply({ number: 0, final: true, outcome: error });
    await eventually(async () =>
      expect(await stand.commands.llen(names.replies(gateway.name))).toBe(0),
    );
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(sent.sink.error).toBeUndefined();
    expect(sent.sink.responses).toHaveLength(1);
    expect(next.sink.ended).toBe(false);
    expect(version.scheduler.inflight).toBe(1);
  });

  it("hands on an error with its code and text", async () => {
    const sent = await written();
    const error = new InferenceError(StatusCode.InvalidArg, "input 'IN': no");
    await reply({ number: 0, final: true, outcome: error });
    await eventually(() => expect(sent.sink.error).toMatchObject({ code: "INVALID_ARG" }));
    expect(sent.sink.error?.message).toBe("input 'IN': no");
  });

  it("does not send a request whose caller had gone before", async () => {
    const pending = prepare(version.model);
    pending.call.cancel();
    version.scheduler.enqueue(pending);
    expect(pending.sink.error?.code).toBe("CANCELLED");
    expect(version.scheduler.inflight).toBe(0);
    send(version);
    await eventually(async () => expect(await envelopes()).toEqual([1]));
    expect((await version.statistics.observe()).failures.CANCELED).toBe(1);
  });

  it("sends again what Redis has lost", async () => {
    const sent = await written();
    await openQueue(stand.pool, stand.commands).obliterate();
    await eventually(async () => expect(await envelopes()).toEqual([1]));
    await reply({ number: 0, final: true, outcome: responseTo(sent.request) });
    const bundle = encodeReply({
      envelope: `${gateway.name}-1`,
      index: 0,
      number: 0,
      final: true,
      outcome: { ...responseTo(sent.request), id: "again" },
    });
    await stand.commands.rpush(names.replies(gateway.name), bundle);
    await eventually(() => expect(sent.sink.ended).toBe(true));
    expect(idsOf(sent)).toEqual(["again"]);
  });

  async function written(): Promise<SentRequest> {
    const sent = send(version);
    await eventually(async () => expect(await envelopes()).toEqual([1]));
    return sent;
  }
});

function idsOf({ sink }: SentRequest): string[] {
  return sink.responses.map(({ id }) => id);
}
