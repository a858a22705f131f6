import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PendingQueue } from "../../../pool/scheduler/pending-queue.ts";
import type { ModelDynamicBatching } from "../../../protocol/model-config.ts";
import { anonymous } from "../../../protocol/call.ts";
import { plainBatching, noPolicy } from "../../helpers/dynamic-batching.ts";
import { pendingRequest, requestFor } from "../../helpers/requests.ts";
import { modelInput, servedModel } from "../../helpers/served-model.ts";

const model = servedModel("m", { input: [modelInput("IN", "TYPE_FP32", [1])] });

/** Three levels: the first is patient, the second has places for three, the third knows no policy but the default one. */
const threeLevels: ModelDynamicBatching = {
  ...plainBatching,
  priorityLevels: 3,
  defaultPriorityLevel: 2,
  defaultQueuePolicy: { ...noPolicy, defaultTimeoutMicroseconds: 12_000 },
  priorityQueuePolicy: {
    1: {
      ...noPolicy,
      timeoutAction: "DELAY",
      defaultTimeoutMicroseconds: 15_000,
      allowTimeoutOverride: true,
    },
    2: { ...noPolicy, maxQueueSize: 3 },
  },
};

interface Waiting {
  readonly id: string;
  readonly level: number;
  readonly tenant: string;
  /** Among those of its level that are delayed, or are not. */
  round: number;
  /** When it came to its place, or was delayed. */
  arrival: number;
  deadline: number;
  delayed: boolean;
}

/** What the queue must do with `threeLevels`, or without any, by a plain array. */
class PlainQueue {
  readonly #levels: boolean;
  #waiting: Waiting[] = [];
  #arrivals = 0;

  constructor(levels: boolean) {
    this.#levels = levels;
  }

  get size(): number {
    return this.#waiting.length;
  }

  get order(): string[] {
    return this.#inLine.map(({ id }) => id);
  }

  get nextDeadline(): number {
    return Math.min(...this.#waiting.map(({ deadline }) => deadline));
  }

  get #inLine(): Waiting[] {
    return this.#waiting.toSorted(
      (a, b) =>
        a.level - b.level ||
        Number(a.delayed) - Number(b.delayed) ||
        a.round - b.round ||
        a.arrival - b.arrival,
    );
  }

  /** The one after the last in which the tenant has something; for the others the one at the front. */
  #roundFor(tenant: string, level: number, delayed: boolean): number {
    const beside = this.#waiting.filter((one) => one.level === level && one.delayed === delayed);
    const own = beside.filter((one) => one.tenant === tenant).map(({ round }) => round);
    if (own.length > 0) return Math.max(...own) + 1;
    return beside.length > 0 ? Math.min(...beside.map(({ round }) => round)) : 0;
  }

  /** False when there is no place for it. */
  push(
    [id, tenant]: readonly [string, string],
    enqueuedAt: number,
    priority: number,
    timeout: number,
  ): boolean {
    const level = this.#levels ? (priority % 4 === 0 ? 2 : priority % 4) : 0;
    if (level === 2 && this.#waiting.filter((one) => one.level === 2).length >= 3) return false;
    const asked = timeout > 0 ? timeout : Infinity;
    const wait = [asked, Math.min(asked, 15), Infinity, 12][level] ?? Infinity;
    const deadline = enqueuedAt + wait;
    const round = this.#roundFor(tenant, level, false);
    const arrival = this.#arrivals++;
    this.#waiting.push({ id, level, tenant, round, arrival, deadline, delayed: false });
    return true;
  }

  take(count: number): string[] {
    const taken = this.order.slice(0, count);
    for (const id of taken) this.remove(id);
    return taken;
  }

  remove(id: string): boolean {
    const before = this.size;
    this.#waiting = this.#waiting.filter((one) => one.id !== id);
    return this.size < before;
  }

  /** Those that have to leave, in any order; those of level 1 are delayed, by their deadlines. */
  expire(now: number): Set<string> {
    const late = this.#inLine.filter(({ deadline }) => deadline <= now);
    for (const one of late.toSorted((a, b) => a.deadline - b.deadline)) {
      if (one.level !== 1) continue;
      const round = this.#roundFor(one.tenant, 1, true);
      Object.assign(one, { delayed: true, deadline: Infinity, round, arrival: this.#arrivals++ });
    }
    const gone = new Set(late.filter(({ level }) => level !== 1).map(({ id }) => id));
    for (const id of gone) this.remove(id);
    return gone;
  }
}

function orderOf(queue: PendingQueue): string[] {
  const ids: string[] = [];
  for (let entry = queue.front; entry; entry = entry.next) ids.push(entry.pending.request.id);
  return ids;
}

function push(queue: PendingQueue, tenant: string): void {
  queue.push(pendingRequest(requestFor(model, [1]), 0, { ...anonymous, tenant }));
}

function filled(count: number, tenant: string): PendingQueue {
  const queue = new PendingQueue();
  for (let i = 0; i < count; i++) push(queue, tenant);
  return queue;
}

type Action = "push" | "take" | "remove" | "expire";

const tenants = ["a", "a", "a", "b", "c"];

const steps: fc.Arbitrary<[Action, number, number, string][]> = fc.array(
  fc.tuple(
    fc.constantFrom<Action>("push", "push", "push", "push", "take", "remove", "expire"),
    fc.nat({ max: 20 }),
    fc.nat({ max: 4 }),
    fc.constantFrom(...tenants),
  ),
  { maxLength: 80, size: "max" },
);

describe("PendingQueue", () => {
  it.each([
    ["with levels and policies", threeLevels],
    ["without", undefined],
  ] as const)("does what a plain array does, whatever comes and goes, %s", (_, batching) => {
    fc.assert(
      fc.property(steps, (given) => {
        const queue = new PendingQueue(batching);
        const plain = new PlainQueue(batching !== undefined);
        const entries: ReturnType<PendingQueue["push"]>[] = [];
        const act: Record<
          Action,
          (number: number, priority: number, tenant: string) => [unknown, unknown]
        > = {
          push(timeout, priority, tenant) {
            // No two deadlines are equal: which of these would be first is nobody's business.
            const enqueuedAt = entries.length / 1000;
            const id = `${entries.length}`;
            const more = { id, priority, timeoutMicroseconds: timeout * 1000 };
            const principal = { ...anonymous, tenant };
            const request = pendingRequest(requestFor(model, [1], more), enqueuedAt, principal);
            const entry = queue.push(request);
            entries.push(entry);
            return [entry !== undefined, plain.push([id, tenant], enqueuedAt, priority, timeout)];
          },
          take(count) {
            return [queue.take(count).map(({ request }) => request.id), plain.take(count)];
          },
          remove(index) {
            const entry = entries[index];
            return [entry ? queue.remove(entry) : false, plain.remove(`${index}`)];
          },
          expire(now) {
            const gone = new Set<string>();
            for (let late = queue.takeExpired(now); late; late = queue.takeExpired(now))
              gone.add(late.request.id);
            return [gone, plain.expire(now)];
          },
        };
        for (const [action, number, priority, tenant] of given) {
          const [actual, expected] = act[action](number, priority, tenant);
          expect(actual).toEqual(expected);
          expect(queue.size).toBe(plain.size);
          expect(orderOf(queue)).toEqual(plain.order);
          expect(queue.nextDeadline).toBe(plain.nextDeadline);
        }
      }),
    );
  });

  it("lets a tenant that asks now and then pass the one that has filled the line", () => {
    const queue = filled(10_000, "a");
    for (let i = 0; i < 100; i++) {
      push(queue, "b");
      expect(queue.take(2).map(({ call }) => call.principal.tenant)).toEqual(["a", "b"]);
    }
    expect(queue.size).toBe(9900);
  });

  it("gives tenants that all have more waiting the same, to one request", () => {
    const queue = filled(3000, "a");
    for (let i = 0; i < 3000; i++) push(queue, ["b", "c"][i % 2] ?? "");
    for (let i = 0; i < 40; i++) {
      const taken = queue.take(3 * (i + 1)).map(({ call }) => call.principal.tenant);
      for (const tenant of ["a", "b", "c"]) {
        const share = taken.filter((one) => one === tenant).length;
        expect(Math.abs(share - (i + 1))).toBeLessThanOrEqual(1);
      }
    }
  });

  it("gives no turns for having had nothing to ask", () => {
    const queue = filled(100, "a");
    queue.take(50);
    for (let i = 0; i < 50; i++) push(queue, "late");
    const taken = queue.take(20).map(({ call }) => call.principal.tenant);
    expect(taken.filter((tenant) => tenant === "late")).toHaveLength(10);
  });

  it("keeps the order in which all came when the model asks for it", () => {
    const queue = new PendingQueue({ ...plainBatching, preserveOrdering: true });
    for (const tenant of ["a", "a", "a", "b", "c", "b"]) push(queue, tenant);
    const order = queue.take(6).map(({ call }) => call.principal.tenant);
    expect(order).toEqual(["a", "a", "a", "b", "c", "b"]);
  });

  it("tells of changes that a walk from the front would notice, and of no others", () => {
    const queue = new PendingQueue({
      ...plainBatching,
      priorityLevels: 2,
      defaultPriorityLevel: 2,
    });
    const pushed = (priority: number) =>
      queue.push(pendingRequest(requestFor(model, [1], { priority })));
    const first = pushed(2);
    pushed(2);
    expect(queue.changes).toBe(0);
    pushed(1);
    expect(queue.changes).toBe(1);
    if (first) queue.remove(first);
    expect(queue.changes).toBe(2);
  });
});
