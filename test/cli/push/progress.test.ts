import { describe, expect, it } from "vitest";
import { Progress } from "../../../cli/push/progress.ts";

/** An output that remembers, and a clock in hand. */
function stand(isTTY: boolean, total: number, start = 0) {
  let now = 0;
  let text = "";
  const output = {
    isTTY,
    columns: 60,
    write: (piece: string): void => {
      text += piece;
    },
  };
  const progress = new Progress(output, "sending", { total, start }, () => now);
  const pass = (milliseconds: number): void => {
    now += milliseconds;
  };
  return { progress, pass, text: () => text };
}

describe("Progress", () => {
  it("draws one line over itself on a terminal, not too often", () => {
    const { progress, pass, text } = stand(true, 10_000_000);
    pass(1000);
    progress.add(5_000_000);
    pass(50);
    progress.add(1_000_000);
    expect(text()).toBe(
      `\r\u001b[2K${`sending ${"█".repeat(15)}${"░".repeat(15)} 50 % (5.0 of 10.0 MB, 5.0 MB/s, 1 s left)`.slice(0, 60)}`,
    );
    progress.say("again: it broke");
    progress.end();
    expect(text()).toContain("\r\u001b[2Kagain: it broke\n");
    expect(text().endsWith("\r\u001b[2K")).toBe(true);
  });

  it("writes a line for each tenth elsewhere, and none for what is small", () => {
    const { progress, pass, text } = stand(false, 20_000_000, 4_000_000);
    for (let i = 0; i < 16; i++) {
      pass(1000);
      progress.add(1_000_000);
    }
    const percents = [...text().matchAll(/^sending: (\d+) %/gmu)].map(([, percent]) => percent);
    expect(percents).toEqual(["30", "40", "50", "60", "70", "80", "90", "100"]);
    expect(text()).toContain("sending: 30 % (6.0 of 20.0 MB, 1.0 MB/s, 14 s left)\n");
    const small = stand(false, 1000);
    small.progress.add(1000);
    expect(small.text()).toBe("");
  });

  it("takes back what has to be sent again", () => {
    const { progress, pass, text } = stand(false, 10_000_000);
    pass(1000);
    progress.add(3_000_000);
    progress.add(-3_000_000);
    progress.add(2_000_000);
    expect(text().match(/sending/gu)).toHaveLength(1);
  });
});
