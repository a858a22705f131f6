import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { turn } from "../../helpers/fake-clock.ts";
import type { SentRequest } from "../../helpers/requests.ts";
import { CachingStand } from "./caching-stand.ts";

/** What a request has been answered: its own id, an error, or nothing yet. */
function answer({ sink }: SentRequest): string {
  if (sink.error) return sink.error.message;
  return sink.ended ? sink.responses.map(({ id }) => id).join() : "waits";
}

function answers(...sent: readonly SentRequest[]): readonly string[] {
  return sent.map(answer);
}

const cancelled = (id: string): string => `[request id: ${id}] request was cancelled`;
const expired = (id: string): string => `[request id: ${id}] Request timeout expired`;

describe("CachingScheduler with equal requests at the same time", () => {
  it("runs one for all of them", async () => {
    const stand = new CachingStand();
    const sent = await stand.send("a", "b", "c");
    expect(answers(...sent)).toEqual(["waits", "waits", "waits"]);
    await stand.finish(0);
    expect(answers(...sent)).toEqual(["a", "b", "c"]);
    expect(stand.ran).toEqual(["a"]);
    expect(stand.counts).toEqual({ success: 3, fail: 0, hit: 2, miss: 1, queue: 3, compute: 1 });
  });

  it("goes on for the others when the first hangs up", async () => {
    const stand = new CachingStand();
    const [a, b, c] = await stand.send("a", "b", "c");
    if (!a || !b || !c) throw new Error("three were sent");
    a.call.cancel();
    expect(answers(a, b, c)).toEqual([cancelled("a"), "waits", "waits"]);
    await stand.finish(0);
    expect(answers(b, c)).toEqual(["b", "c"]);
    expect(stand.ran).toEqual(["a"]);
    expect(stand.counts).toEqual({ success: 2, fail: 1, hit: 1, miss: 1, queue: 2, compute: 1 });
  });

  it("lets one that joined hang up alone", async () => {
    const stand = new CachingStand();
    const [a, b] = await stand.send("a", "b");
    if (!a || !b) throw new Error("two were sent");
    b.call.cancel();
    await stand.finish(0);
    expect(answers(a, b)).toEqual(["a", cancelled("b")]);
    expect(stand.counts).toMatchObject({ success: 1, fail: 1, hit: 0 });
  });

  it("takes the request out of the queue when all have hung up", async () => {
    const stand = new CachingStand();
    await stand.occupy("busy");
    const [a, b] = await stand.send("a", "b");
    a?.call.cancel();
    b?.call.cancel();
    await turn();
    await stand.finish(0);
    expect(stand.ran).toEqual(["busy"]);
    expect(a && b && answers(a, b)).toEqual([cancelled("a"), cancelled("b")]);
    expect(stand.counts).toMatchObject({ success: 1, fail: 2 });
  });

  it("runs anew what comes after all have hung up", async () => {
    const stand = new CachingStand();
    await stand.occupy("busy");
    const a = await stand.ask("a");
    a.call.cancel();
    const b = await stand.ask("b");
    await stand.finish(0);
    await stand.finish(1);
    expect(answers(a, b)).toEqual([cancelled("a"), "b"]);
    expect(stand.ran).toEqual(["busy", "b"]);
  });

  it("lets nobody fail of the first one's timeout", async () => {
    const stand = new CachingStand();
    await stand.occupy("busy");
    const a = await stand.ask("a", { timeoutMicroseconds: 10_000 });
    const b = await stand.ask("b", { timeoutMicroseconds: 50_000 });
    const c = await stand.ask("c");
    await stand.clock.advance(20);
    expect(answers(a, b, c)).toEqual([expired("a"), "waits", "waits"]);
    await stand.clock.advance(40);
    expect(answers(b, c)).toEqual([expired("b"), "waits"]);
    await stand.finish(0);
    await stand.finish(1);
    expect(answer(c)).toBe("c");
    expect(stand.ran).toEqual(["busy", "c"]);
    expect(stand.counts).toEqual({ success: 2, fail: 2, hit: 0, miss: 2, queue: 2, compute: 2 });
  });

  it("lets nobody wait longer than its own timeout", async () => {
    const stand = new CachingStand();
    await stand.occupy("busy");
    const a = await stand.ask("a");
    const b = await stand.ask("b", { timeoutMicroseconds: 10_000 });
    await stand.clock.advance(20);
    expect(answers(a, b)).toEqual(["waits", expired("b")]);
  });

  it("does not let a request wait behind others of a lower priority", async () => {
    const stand = new CachingStand();
    await stand.occupy("busy");
    await stand.ask("low", { priority: 2 });
    await stand.ask("high", { priority: 1 });
    await stand.finish(0);
    expect(stand.ran).toEqual(["busy", "high"]);
  });

  it("tells each of a failure under its own id", async () => {
    const stand = new CachingStand();
    const [a, b] = await stand.send("a", "b");
    const text = "[request id: a] broken";
    stand.instances.executions[0]?.fail(new InferenceError(StatusCode.Internal, text));
    await turn();
    expect(a && b && answers(a, b)).toEqual([text, "[request id: b] broken"]);
    expect(stand.counts).toMatchObject({ success: 0, fail: 2, hit: 0, miss: 0 });
  });

  it("loses none and answers none twice, whoever hangs up and whatever fails", async () => {
    const chaos = new Chaos();
    for (let step = 0; step < 2000; step++) await chaos.step(String(step));
    await chaos.end();
    const { sent, stand } = chaos;
    expect(sent.filter((one) => !isAnsweredOnce(one)).map(({ request }) => request.id)).toEqual([]);
    const { success, fail, hit } = stand.counts;
    expect(success + fail).toBe(sent.length);
    expect(hit).toBeGreaterThan(50);
  });
});

/** Requests of few kinds that come, hang up, run out of time, fail and are answered by chance: always the same one. */
class Chaos {
  readonly stand = new CachingStand();
  readonly sent: SentRequest[] = [];
  #seed = 7;
  #ended = 0;

  async step(id: string): Promise<void> {
    if (this.#random(2) === 0) this.#send(id);
    if (this.#random(6) === 0) this.sent[this.#random(this.sent.length)]?.call.cancel();
    if (this.#random(3) === 0) this.#endExecution();
    await this.stand.clock.advance(this.#random(3));
  }

  async end(): Promise<void> {
    const stopped = this.stand.scheduler.stop();
    while (this.#ended < this.stand.instances.executions.length)
      await this.stand.finish(this.#ended++);
    await stopped;
    await turn();
  }

  #send(id: string): void {
    const parameters = new Map([["which", this.#random(3)]]);
    const timeoutMicroseconds = this.#random(4) === 0 ? 1000 + this.#random(20_000) : 0;
    const anew = this.#random(3) === 0 ? ({ cacheControl: "no-cache" } as const) : {};
    this.sent.push(this.stand.enqueue(id, [1, 4], { parameters, timeoutMicroseconds, ...anew }));
  }

  #endExecution(): void {
    const execution = this.stand.instances.executions[this.#ended];
    if (!execution) return;
    this.#ended++;
    if (this.#random(5) > 0) execution.finish();
    else execution.fail(new InferenceError(StatusCode.Internal, "broken"));
  }

  #random(below: number): number {
    this.#seed = (this.#seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return this.#seed % Math.max(1, below);
  }
}

function isAnsweredOnce({ request, sink }: SentRequest): boolean {
  const outcomes = sink.responses.length + (sink.error ? 1 : 0);
  return outcomes === 1 && sink.responses.every(({ id }) => id === request.id);
}
