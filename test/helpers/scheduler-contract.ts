import { expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../protocol/error.ts";
import type { Scheduler } from "../../serving/scheduler.ts";
import { eventually } from "./eventually.ts";
import type { HandHeldExecution } from "./hand-held-instances.ts";
import type { SentRequest } from "./requests.ts";

/** A scheduler whose requests run one at a time, in this process or elsewhere, for as long as the test says. */
export interface ContractStand {
  readonly scheduler: Scheduler;
  readonly executions: readonly HandHeldExecution[];
  /** A request that the scheduler has not seen yet. */
  prepare(id: string): SentRequest;
  /** Requests where they run, waiting ones among them. */
  inHand(): number;
}

/**
 * What each and every scheduler owes its requests, wherever they run.
 *
 * @param open a stand for one test
 */
export function schedulerContract(open: () => ContractStand | Promise<ContractStand>): void {
  const begin = async (): Promise<ContractUse> => new ContractUse(await open());

  it("answers each request through its own sink, in the order in which they came", async () => {
    const use = await begin();
    const sent = use.send("a", "b", "c");
    for (const id of ["a", "b", "c"]) (await use.running(id)).finish();
    await use.over(...sent);
    expect(sent.map(({ sink }) => sink.responses.map((response) => response.id))).toEqual([
      ["a"],
      ["b"],
      ["c"],
    ]);
    expect(use.ran).toEqual(["a", "b", "c"]);
  });

  it("counts requests until they are answered", async () => {
    const use = await begin();
    const [a, b] = use.send("a", "b");
    expect(use.scheduler.inflight).toBe(2);
    (await use.running("a")).finish();
    await use.over(a);
    await eventually(() => expect(use.scheduler.inflight).toBe(1));
    (await use.running("b")).finish();
    await use.over(b);
    await eventually(() => expect(use.scheduler.inflight).toBe(0));
  });

  it("passes an execution's error to its request and goes on", async () => {
    const use = await begin();
    const [a, b] = use.send("a", "b");
    (await use.running("a")).fail(new InferenceError(StatusCode.Internal, "no luck"));
    (await use.running("b")).finish();
    await use.over(a, b);
    expect(a?.sink.error?.code).toBe("INTERNAL");
    expect(a?.sink.error?.message).toContain("no luck");
    expect(b?.sink.responses).toHaveLength(1);
  });

  it("never runs a request that is cancelled while it waits", async () => {
    const use = await begin();
    const [a, b, c] = use.send("a", "b", "c");
    const running = await use.running("a");
    await eventually(() => expect(use.inHand).toBe(3));
    b?.call.cancel();
    await use.over(b);
    expect(b?.sink.error).toMatchObject({
      code: "CANCELLED",
      message: "[request id: b] request was cancelled",
    });
    expect(use.scheduler.inflight).toBe(2);
    await eventually(() => expect(use.inHand).toBe(2));
    running.finish();
    (await use.running("c")).finish();
    await use.over(a, c);
    expect(use.ran).toEqual(["a", "c"]);
  });

  it("never runs a request that was cancelled before it came", async () => {
    const use = await begin();
    const early = use.prepare("a");
    early.call.cancel();
    use.scheduler.enqueue(early);
    const [b] = use.send("b");
    (await use.running("b")).finish();
    await use.over(early, b);
    expect(early.sink.error?.code).toBe("CANCELLED");
    expect(b?.sink.error).toBeUndefined();
    expect(use.ran).toEqual(["b"]);
  });

  it("finishes what it has taken, and nothing else, after it was told to stop", async () => {
    const use = await begin();
    const [a, b] = use.send("a", "b");
    let stopped = false;
    const stop = use.scheduler.stop().then(() => (stopped = true));
    const [late] = use.send("c");
    expect(late?.sink.error?.code).toBe("UNAVAILABLE");
    expect(late?.sink.error?.message).toMatch(/^\[request id: c\] model '\w+' is being unloaded$/u);
    (await use.running("a")).finish();
    const last = await use.running("b");
    expect(stopped).toBe(false);
    last.finish();
    await stop;
    expect([a, b].map((sent) => sent?.sink.responses.length)).toEqual([1, 1]);
  });

  it("stops at once when it has nothing to do", async () => {
    const use = await begin();
    const [a] = use.send("a");
    (await use.running("a")).finish();
    await use.over(a);
    await expect(use.scheduler.stop()).resolves.toBeUndefined();
  });
}

/** A stand as the cases speak to it. */
class ContractUse {
  readonly #stand: ContractStand;

  constructor(stand: ContractStand) {
    this.#stand = stand;
  }

  get scheduler(): Scheduler {
    return this.#stand.scheduler;
  }

  get inHand(): number {
    return this.#stand.inHand();
  }

  /** The ids of each execution so far. */
  get ran(): readonly string[] {
    return this.#stand.executions.map(({ ids }) => ids);
  }

  prepare(id: string): SentRequest {
    return this.#stand.prepare(id);
  }

  /** Hands over requests in one turn. */
  send(...ids: readonly string[]): readonly SentRequest[] {
    const sent = ids.map((id) => this.prepare(id));
    for (const one of sent) this.scheduler.enqueue(one);
    return sent;
  }

  /** The execution of that request, once it runs. */
  running(id: string): Promise<HandHeldExecution> {
    return eventually(() => {
      const found = this.#stand.executions.find(({ ids }) => ids === id);
      if (!found) throw new Error(`'${id}' does not run`);
      return found;
    });
  }

  async over(...sent: readonly (SentRequest | undefined)[]): Promise<void> {
    await eventually(() => {
      const open = sent.filter((one) => !one?.sink.ended);
      if (open.length > 0) throw new Error(`${open.length} requests are not answered`);
    });
  }
}
