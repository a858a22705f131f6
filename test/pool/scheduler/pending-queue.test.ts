import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PendingQueue } from "../../../pool/scheduler/pending-queue.ts";
import type { ModelDynamicBatching } from "../../../protocol/model-config.ts";
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
      (a, b) => a.level - b.level || Number(a.delayed) - Number(b.delayed) || a.arrival - b.arrival,
    );
  }

  /** False when there is no place for it. */
  push(id: string, enqueuedAt: number, priority: number, timeout: number): boolean {
    const level = this.#levels ? (priority % 4 === 0 ? 2 : priority % 4) : 0;
    if (level === 2 && this.#waiting.filter((one) => one.level === 2).length >= 3) return false;
    const asked = timeout > 0 ? timeout : Infinity;
    const wait = [asked, Math.min(asked, 15), Infinity, 12][level] ?? Infinity;
    const deadline = enqueuedAt + wait;
    this.#waiting.push({ id, level, arrival: this.#arrivals++, deadline, delayed: false });
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
      Object.assign(one, { delayed: true, deadline: Infinity, arrival: this.#arrivals++ });
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

type Action = "push" | "take" | "remove" | "expire";

const steps: fc.Arbitrary<[Action, number, number][]> = fc.array(
  fc.tuple(
    fc.constantFrom<Action>("push", "push", "push", "push", "take", "remove", "expire"),
    fc.nat({ max: 20 }),
    fc.nat({ max: 4 }),
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
        const act: Record<Action, (number: number, priority: number) => [unknown, unknown]> = {
          push(timeout, priority) {
            // No two deadlines are equal: which of these would be first is nobody's business.
            const enqueuedAt = entries.length / 1000;
            const id = `${entries.length}`;
            const more = { id, priority, timeoutMicroseconds: timeout * 1000 };
            const entry = queue.push(pendingRequest(requestFor(model, [1], more), enqueuedAt));
            entries.push(entry);
            return [entry !== undefined, plain.push(id, enqueuedAt, priority, timeout)];
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
        for (const [action, number, priority] of given) {
          const [actual, expected] = act[action](number, priority);
          expect(actual).toEqual(expected);
          expect(queue.size).toBe(plain.size);
          expect(orderOf(queue)).toEqual(plain.order);
          expect(queue.nextDeadline).toBe(plain.nextDeadline);
        }
      }),
    );
  });

  it("tells of changes that a walk from the front would notice, and of no others", () => {
    const queue = new PendingQueue({
      ...plainBatching,
      priorityLevels: 2,
      defaultPriorityLevel: 2,
    });
    const push = (priority: number) =>
      queue.push(pendingRequest(requestFor(model, [1], { priority })));
    const first = push(2);
    push(2);
    expect(queue.changes).toBe(0);
    push(1);
    expect(queue.changes).toBe(1);
    if (first) queue.remove(first);
    expect(queue.changes).toBe(2);
  });
});
