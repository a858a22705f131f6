import { describe, expect, it } from "vitest";
import { ReadReceipt } from "../../queue/read-receipt.ts";
import { FakeClock, turn } from "../helpers/fake-clock.ts";
import { KeptAnswers, requestFor, responseTo } from "../helpers/requests.ts";
import { modelInput, servedModel } from "../helpers/served-model.ts";

const model = servedModel("m", { input: [modelInput("IN", "TYPE_FP32", [-1])] });
/** Of a bit more than 100 KiB. */
const response = responseTo(requestFor(model, [25_600]));

class SlowReader extends KeptAnswers {
  room: Promise<void> | undefined;
}

interface Stand {
  readonly clock: FakeClock;
  readonly sink: SlowReader;
  readonly receipt: ReadReceipt;
  readonly told: number[];
  /** As a gateway does for each reply that comes. */
  readonly reply: (final?: boolean) => void;
}

function stand(): Stand {
  const clock = new FakeClock();
  const sink = new SlowReader();
  const told: number[] = [];
  let replies = 0;
  const tell = (number: number): void => void told.push(number);
  const receipt = new ReadReceipt({ sink, clock, replies: () => replies, tell });
  const reply = (final = false): void => {
    replies++;
    if (final) receipt.end();
    receipt.send(response, final);
  };
  return { clock, sink, receipt, told, reply };
}

describe("ReadReceipt", () => {
  it("tells now and then of a client that keeps up", () => {
    const { told, reply, sink } = stand();
    for (let i = 0; i < 7; i++) reply();
    expect(told).toEqual([2, 5]);
    expect(sink.responses).toHaveLength(7);
  });

  it("tells of a client that is behind once it is not", async () => {
    const { told, reply, sink } = stand();
    const { promise: room, resolve } = Promise.withResolvers<void>();
    sink.room = room;
    for (let i = 0; i < 7; i++) reply();
    await turn();
    expect(told).toEqual([]);
    sink.room = undefined;
    resolve();
    await turn();
    expect(told).toEqual([6]);
  });

  it("says again what a pool worker that sends nothing may not have heard", async () => {
    const { told, reply, clock } = stand();
    for (let i = 0; i < 3; i++) reply();
    await clock.advance(1000);
    expect(told).toEqual([2]);
    await clock.advance(2000);
    expect(told).toEqual([2, 2, 2]);
  });

  it("is silent after the last reply", async () => {
    const { told, reply, clock } = stand();
    reply(true);
    for (let i = 0; i < 7; i++) reply();
    await clock.advance(5000);
    expect([told, clock.timers]).toEqual([[], 0]);
  });
});
