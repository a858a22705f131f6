import { expect, it } from "vitest";
import { maxWaiting } from "../../../serving/scheduler.ts";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { turn } from "../../helpers/fake-clock.ts";
import { schedulerContract } from "../../helpers/scheduler-contract.ts";
import type { SchedulerStand } from "../../helpers/scheduler-stand.ts";

/**
 * What every scheduler owes its requests. The stand's model runs one item at a time on one instance.
 *
 * @param timeoutText of a request by its label
 */
export function schedulerCases(
  createStand: () => SchedulerStand,
  timeoutText = (label: string): string => `${label}Request timeout expired`,
): void {
  schedulerContract(() => {
    const stand = createStand();
    return {
      scheduler: stand.scheduler,
      executions: stand.instances.executions,
      prepare: (id) => stand.prepare(id),
      inHand: () => stand.scheduler.inflight,
    };
  });

  it("keeps requests while no instance has room", async () => {
    const stand = createStand();
    await stand.send("a");
    await stand.send("b", "c");
    await stand.clock.advance(60_000);
    expect(stand.ran).toEqual(["a"]);
    expect(stand.scheduler.inflight).toBe(3);
  });

  it("refuses a request at once when too many wait already", async () => {
    const stand = createStand();
    await stand.send("a");
    for (let i = 0; i < maxWaiting; i++) stand.enqueue(`${i}`);
    const late = stand.enqueue("late");
    expect(late.sink.error).toMatchObject({
      code: "UNAVAILABLE",
      message: "[request id: late] Exceeds maximum queue size",
    });
    expect(stand.scheduler.inflight).toBe(maxWaiting + 1);
    expect(stand.statistics.observe()).toMatchObject({
      pending: maxWaiting,
      failures: { REJECTED: 1 },
    });
    await stand.finish(0);
    expect(stand.enqueue("in time").sink.ended).toBe(false);
  });

  it("takes a cancelled request out of the line at once", async () => {
    const stand = createStand();
    const [, b] = await stand.send("a", "b", "c");
    b?.call.cancel();
    expect(b?.sink.ended).toBe(true);
    expect(stand.scheduler.inflight).toBe(2);
  });

  it("leaves a request that runs to its execution when the caller hangs up", async () => {
    const stand = createStand();
    const [a] = await stand.send("a");
    a?.call.cancel();
    expect(a?.sink.ended).toBe(false);
    await stand.finish(0);
    expect(a?.sink.responses).toHaveLength(1);
  });

  it("takes a request out of the line when its timeout has passed", async () => {
    const stand = createStand();
    await stand.send("a");
    const b = stand.enqueue("b", undefined, { timeoutMicroseconds: 5000 });
    const c = stand.enqueue("", undefined, { timeoutMicroseconds: 2500 });
    const d = stand.enqueue("d", undefined, { timeoutMicroseconds: 9000 });
    await turn();
    await stand.clock.advance(2.4);
    expect(c.sink.ended).toBe(false);
    await stand.clock.advance(0.1);
    const message = timeoutText("[request id: <id_unknown>] ");
    expect(c.sink.error).toMatchObject({ code: "UNAVAILABLE", message });
    expect(b.sink.ended).toBe(false);
    await stand.clock.advance(2.5);
    expect(b.sink.error?.message).toBe(timeoutText("[request id: b] "));
    await stand.finish(0);
    expect(stand.ran).toEqual(["a", "d"]);
    expect(d.sink.ended).toBe(false);
  });

  it("lets no timeout interrupt an execution", async () => {
    const stand = createStand();
    const a = stand.enqueue("a", undefined, { timeoutMicroseconds: 1000 });
    await turn();
    await stand.clock.advance(5000);
    await stand.finish(0);
    expect(a.sink.responses).toHaveLength(1);
  });

  it("needs one timer however many requests have a timeout", async () => {
    const stand = createStand();
    await stand.send("a");
    for (let i = 1; i < 50; i++)
      stand.enqueue(`${i}`, undefined, { timeoutMicroseconds: i * 1000 });
    await turn();
    expect(stand.clock.timers).toBe(1);
    await stand.clock.advance(25);
    expect(stand.scheduler.inflight).toBe(25);
    stand.enqueue("hasty", undefined, { timeoutMicroseconds: 100 });
    await turn();
    expect(stand.clock.timers).toBe(1);
    await stand.clock.advance(0.1);
    expect(stand.scheduler.inflight).toBe(25);
  });

  it("leaves no timer behind when it was told to stop", async () => {
    const stand = createStand();
    await stand.send("a");
    stand.enqueue("b", undefined, { timeoutMicroseconds: 1000 });
    const stop = stand.scheduler.stop();
    await stand.clock.advance(1);
    await stand.finish(0);
    await stop;
    expect(stand.clock.timers).toBe(0);
  });

  it("counts those that wait, and why others failed", async () => {
    const stand = createStand();
    const [, b] = await stand.send("a", "b", "c");
    expect(stand.statistics.observe().pending).toBe(2);
    b?.call.cancel();
    const late = stand.enqueue("d", undefined, { timeoutMicroseconds: 1000 });
    await turn();
    await stand.clock.advance(1);
    expect(late.sink.ended).toBe(true);
    await failFirst(stand);
    await stand.finish(1);
    expect(stand.statistics.observe()).toMatchObject({
      pending: 0,
      success: 1,
      failures: { REJECTED: 1, CANCELED: 1, BACKEND: 1, OTHER: 0 },
    });
  });
}

/** Lets the first execution fail, and then those run that waited for it. */
async function failFirst({ instances }: SchedulerStand): Promise<void> {
  instances.executions[0]?.fail(new InferenceError(StatusCode.Internal, "no luck"));
  await turn();
  await turn();
}
