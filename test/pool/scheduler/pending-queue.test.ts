import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PendingQueue } from "../../../pool/scheduler/pending-queue.ts";
import { pendingRequest, requestFor } from "../../helpers/requests.ts";
import { modelInput, servedModel } from "../../helpers/served-model.ts";

const model = servedModel("m", { input: [modelInput("IN", "TYPE_FP32", [1])] });

function pending(id: string, timeoutMicroseconds = 0) {
  return pendingRequest(requestFor(model, [1], { id, timeoutMicroseconds }), 0);
}

/** What the queue must do, by a plain array. */
class PlainQueue {
  #waiting: { id: string; deadline: number }[] = [];

  get size(): number {
    return this.#waiting.length;
  }

  get front(): string | undefined {
    return this.#waiting[0]?.id;
  }

  get nextDeadline(): number {
    return Math.min(...this.#waiting.map(({ deadline }) => deadline));
  }

  push(id: string, timeout: number): void {
    this.#waiting.push({ id, deadline: timeout > 0 ? timeout : Infinity });
  }

  take(count: number): string[] {
    return this.#waiting.splice(0, count).map(({ id }) => id);
  }

  remove(id: string): boolean {
    const before = this.size;
    this.#waiting = this.#waiting.filter((one) => one.id !== id);
    return this.size < before;
  }
}

type Action = "push" | "take" | "remove" | "expire";

const steps: fc.Arbitrary<[Action, number][]> = fc.array(
  fc.tuple(
    fc.constantFrom<Action>("push", "push", "push", "take", "remove", "expire"),
    fc.nat({ max: 20 }),
  ),
  { maxLength: 80 },
);

describe("PendingQueue", () => {
  it("does what a plain array does, whatever comes and goes", () => {
    fc.assert(
      fc.property(steps, (given) => {
        const queue = new PendingQueue();
        const plain = new PlainQueue();
        const entries: ReturnType<PendingQueue["push"]>[] = [];
        const act: Record<Action, (number: number) => readonly [unknown, unknown]> = {
          push(timeout) {
            const id = `${entries.length}`;
            entries.push(queue.push(pending(id, timeout * 1000)));
            plain.push(id, timeout);
            return [undefined, undefined];
          },
          take(count) {
            return [queue.take(count).map(({ request }) => request.id), plain.take(count)];
          },
          remove(index) {
            const entry = entries[index];
            return [entry ? queue.remove(entry) : false, plain.remove(`${index}`)];
          },
          expire(now) {
            const due = plain.nextDeadline <= now ? plain.nextDeadline : undefined;
            const id = queue.takeExpired(now)?.request.id;
            if (id !== undefined) plain.remove(id);
            return [id === undefined ? undefined : entries[Number(id)]?.deadline, due];
          },
        };
        for (const [action, number] of given) {
          const [actual, expected] = act[action](number);
          expect(actual).toEqual(expected);
          expect(queue.size).toBe(plain.size);
          expect(queue.front?.pending.request.id).toBe(plain.front);
          expect(queue.nextDeadline).toBe(plain.nextDeadline);
        }
      }),
    );
  });
});
