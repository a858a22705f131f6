import { describe, expect, it } from "vitest";
import { TakenRequests } from "../../queue/taken-requests.ts";

describe("TakenRequests", () => {
  it("has room until as many are taken as it bounds, and says when there is room again", () => {
    let said = 0;
    const taken = new TakenRequests(10, () => said++);
    const first = taken.take("a", 4);
    expect(taken.hasRoom).toBe(true);
    const second = taken.take("a", 7);
    expect(taken.hasRoom).toBe(false);
    first.answered();
    expect([taken.hasRoom, said]).toEqual([false, 0]);
    second.answered();
    expect([taken.hasRoom, said]).toEqual([true, 1]);
    first.answered();
    expect(said).toBe(1);
  });

  it("has room for a tenant that has less than an equal part of what is taken", () => {
    const taken = new TakenRequests(12, () => {});
    const flood = taken.take("a", 12);
    expect(taken.hasRoomFor("a")).toBe(false);
    expect(taken.hasRoomFor("b")).toBe(true);
    taken.take("b", 5);
    expect(taken.hasRoomFor("b")).toBe(true);
    taken.take("b", 1);
    expect(taken.hasRoomFor("b")).toBe(false);
    expect(taken.hasRoomFor("c")).toBe(true);
    flood.over();
    expect(taken.hasRoomFor("b")).toBe(true);
  });

  it("counts each request out once, however its job ends", () => {
    const taken = new TakenRequests(1, () => {});
    const job = taken.take("a", 2);
    for (let i = 0; i < 3; i++) job.answered();
    job.over();
    job.over();
    expect(taken.hasRoom).toBe(true);
    taken.take("a", 1);
    expect(taken.hasRoom).toBe(false);
  });
});
