import { describe, expect, it } from "vitest";
import { ReaderCredit } from "../../queue/reader-credit.ts";
import { FakeClock, turn } from "../helpers/fake-clock.ts";

const half = 512 * 1024;

interface Stand {
  readonly clock: FakeClock;
  readonly credit: ReaderCredit;
  lives: boolean;
  gone: number;
}

function stand(): Stand {
  const clock = new FakeClock();
  const given: Stand = {
    clock,
    lives: true,
    gone: 0,
    credit: new ReaderCredit({
      clock,
      isWaitedFor: async () => given.lives,
      onGone: () => {
        given.gone++;
        given.credit.end();
      },
    }),
  };
  return given;
}

/** True when the promise is settled by the end of the turn. */
async function settles(promise: Promise<void> | undefined): Promise<boolean> {
  let settled = false;
  void promise?.then(() => (settled = true));
  await turn();
  return settled;
}

describe("ReaderCredit", () => {
  it("lets a model wait while more than a mebibyte is unread", async () => {
    const { credit } = stand();
    for (let number = 0; number < 2; number++) credit.sent(number, half);
    expect(credit.room).toBeUndefined();
    credit.sent(2, half);
    const { room } = credit;
    expect(await settles(room)).toBe(false);
    credit.read(0);
    expect(await settles(room)).toBe(true);
    expect(credit.room).toBeUndefined();
  });

  it("believes the last that it is told, however often and whenever", async () => {
    const { credit } = stand();
    for (let number = 0; number < 4; number++) credit.sent(number, half);
    const { room } = credit;
    credit.read(0);
    credit.read(0);
    expect(await settles(room)).toBe(false);
    credit.read(3);
    credit.read(1);
    expect(await settles(room)).toBe(true);
    // As a second run of the same request does.
    for (let number = 0; number < 4; number++) credit.sent(number, half);
    expect(credit.room).toBeUndefined();
  });

  it("does not wait for a gateway that died", async () => {
    const given = stand();
    for (let number = 0; number < 3; number++) given.credit.sent(number, half);
    const { room } = given.credit;
    await given.clock.advance(10_000);
    expect([given.gone, await settles(room)]).toEqual([0, false]);
    given.lives = false;
    await given.clock.advance(2000);
    expect([given.gone, await settles(room), given.clock.timers]).toEqual([1, true, 0]);
  });

  it("leaves nothing behind when nobody waits any more", async () => {
    const { credit, clock } = stand();
    for (let number = 0; number < 3; number++) credit.sent(number, half);
    const { room } = credit;
    credit.end();
    expect([await settles(room), clock.timers]).toEqual([true, 0]);
  });
});
