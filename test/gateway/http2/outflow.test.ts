import { PassThrough } from "node:stream";
import { beforeEach, describe, expect, it } from "vitest";
import { FrameWriter } from "../../../gateway/http2/frame-writer.ts";
import { Outflow, type Sending } from "../../../gateway/http2/outflow.ts";
import { initial } from "../../../gateway/http2/wire.ts";

let outflow: Outflow;
let turns: string[];
beforeEach(() => {
  outflow = new Outflow(new FrameWriter(new PassThrough()));
  turns = [];
});

/** Takes as much as it gets whenever it is its turn. */
function sending(name: string): Sending {
  const self = {
    flush(): void {
      turns.push(name);
      while (outflow.take(10, self) > 0);
    },
  };
  return self;
}

/** Three that wait on a connection whose window is used up. */
function waiting(): readonly Sending[] {
  const all = ["a", "b", "c"].map(sending);
  while (outflow.take(initial.windowBytes, { flush: () => {} }) > 0);
  for (const each of all) outflow.take(1, each);
  return all;
}

describe("Outflow", () => {
  it("gives what there is to those who wait in their turns", () => {
    waiting();
    for (let i = 0; i < 5; i++) outflow.widen(25);
    expect(turns).toEqual(["a", "b", "c", "a", "b"]);
  });

  it("remembers nobody who has nothing to send any more", () => {
    const [, second] = waiting();
    if (second) outflow.forget(second);
    for (let i = 0; i < 4; i++) outflow.widen(1);
    expect(turns).toEqual(["a", "c", "a", "c"]);
  });
});
