import { beforeEach, describe, expect, it } from "vitest";
import { Gathering, maxRequests } from "../../queue/gathering.ts";
import { eventually } from "../helpers/eventually.ts";

describe("Gathering", () => {
  let envelopes: number[][];
  let gathering: Gathering<number>;
  beforeEach(() => {
    envelopes = [];
    gathering = new Gathering((requests) => {
      if (requests.length > 0) envelopes.push([...requests]);
      for (const _ of requests) gathering.began();
    });
  });

  function add(...requests: number[]): void {
    for (const request of requests) gathering.add(request);
  }

  it("sends all that come in one turn together, at once while nothing is out", async () => {
    add(1, 2, 3);
    expect(envelopes).toEqual([]);
    await turn();
    expect(envelopes).toEqual([[1, 2, 3]]);
  });

  it("gathers until as many wait as are out", async () => {
    add(1, 2, 3);
    await turn();
    add(4, 5);
    await turn();
    expect(envelopes).toHaveLength(1);
    add(6);
    await turn();
    expect(envelopes).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
  });

  it("sends what waits as soon as no more are out", async () => {
    add(1, 2, 3);
    await turn();
    add(4);
    gathering.ended();
    await turn();
    expect(envelopes).toHaveLength(1);
    gathering.ended();
    await turn();
    expect(envelopes).toEqual([[1, 2, 3], [4]]);
  });

  it("does not wait for what comes back late", async () => {
    add(1, 2, 3);
    await turn();
    add(4);
    await eventually(() => expect(envelopes).toEqual([[1, 2, 3], [4]]));
  });

  it("gathers no more than an envelope takes", async () => {
    add(...Array(2 * maxRequests).keys());
    await turn();
    add(...Array(maxRequests).keys());
    await turn();
    expect(envelopes.map(({ length }) => length)).toEqual([2 * maxRequests, maxRequests]);
  });

  it("leaves out what was taken back", async () => {
    add(1, 2);
    gathering.remove(1);
    await turn();
    expect(envelopes).toEqual([[2]]);
    expect(gathering.isIdle).toBe(false);
    gathering.ended();
    add(3);
    gathering.remove(3);
    expect(gathering.isIdle).toBe(true);
  });
});

/** Of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
