import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PendingRequest } from "../../../serving/scheduler.ts";
import { dynamicStand, noPolicy } from "../../helpers/dynamic-batching.ts";
import { turn } from "../../helpers/fake-clock.ts";
import type { SentRequest } from "../../helpers/requests.ts";

type Stand = ReturnType<typeof dynamicStand>;
type Step = readonly [action: "send" | "finish" | "cancel" | "wait", which: number, how: number];

const steps = fc.array(
  fc.tuple(
    fc.constantFrom<Step[0][]>("send", "send", "send", "send", "finish", "cancel", "wait"),
    fc.nat(4),
    fc.nat(9),
  ),
  { maxLength: 80, size: "max" },
);

/** Three levels: the first delays, the second rejects and has few places, the third waits for ever. */
const levels = {
  priorityLevels: 3,
  defaultPriorityLevel: 3,
  priorityQueuePolicy: {
    1: { ...noPolicy, timeoutAction: "DELAY" as const, defaultTimeoutMicroseconds: 2000 },
    2: {
      ...noPolicy,
      defaultTimeoutMicroseconds: 3000,
      allowTimeoutOverride: true,
      maxQueueSize: 5,
    },
    3: noPolicy,
  },
};

/** Does what the steps tell, lets the rest run to its end, and keeps account of it. */
class Play {
  readonly sent: SentRequest[] = [];
  /** The ids of answers, in their order. */
  readonly answers: string[] = [];
  readonly faults: string[] = [];
  readonly #stand: Stand;
  readonly #running: number[] = [];
  readonly #started = new Set<string>();
  #seen = 0;

  constructor(stand: Stand) {
    this.#stand = stand;
  }

  async run(given: readonly Step[]): Promise<void> {
    const { clock, scheduler } = this.#stand;
    for (const [action, which, how] of given) {
      if (action === "send") this.#send(which, how);
      else if (action === "cancel") this.#cancel(how);
      else if (action === "wait") await clock.advance(how / 3);
      else await this.#finish(which);
      if (action !== "send") this.#look();
    }
    await turn();
    const stopped = scheduler.stop();
    while (scheduler.inflight > 0) {
      this.#look();
      await clock.advance(1);
      await this.#finish(0);
    }
    await stopped;
  }

  get startedInOrder(): string[] {
    return [...this.#started];
  }

  #send(which: number, how: number): void {
    const more = { priority: which, ...(how === 9 && { timeoutMicroseconds: 1000 }) };
    const sent = this.#stand.prepare(`${this.sent.length}`, [1 + (how % 3), 4], more);
    this.sent.push(sent);
    this.#stand.scheduler.enqueue(this.#accounted(sent));
  }

  /** Who does not run yet is answered at once. */
  #cancel(how: number): void {
    const sent = this.sent.at(-1 - how);
    this.#look();
    sent?.call.cancel();
    if (sent && !this.#started.has(sent.request.id) && !sent.sink.ended)
      this.faults.push(`${sent.request.id} is still in line`);
  }

  #accounted(sent: SentRequest): PendingRequest {
    const { sink, request } = sent;
    return {
      ...sent,
      sink: {
        send: (response, final) => {
          this.answers.push(request.id);
          sink.send(response, final);
        },
        fail: (error) => {
          this.answers.push(request.id);
          sink.fail(error);
        },
      },
    };
  }

  async #finish(which: number): Promise<void> {
    const [execution] = this.#running.splice(which % Math.max(1, this.#running.length), 1);
    if (execution !== undefined) await this.#stand.finish(execution);
  }

  /** No batch is too large, and nobody was passed over by a request of a lower level. */
  #look(): void {
    const { executions } = this.#stand.instances;
    for (; this.#seen < executions.length; this.#seen++) {
      const taken = executions[this.#seen]?.requests ?? [];
      this.#running.push(this.#seen);
      const batchSize = taken.reduce((sum, { request }) => sum + request.batchSize, 0);
      if (batchSize > 4) this.faults.push(`a batch of ${batchSize}`);
      for (const { request } of taken) this.#started.add(request.id);
      const left = this.sent.filter(
        ({ sink, request }) => !sink.ended && !this.#started.has(request.id),
      );
      if (Math.max(...taken.map(levelOf)) > Math.min(...left.map(levelOf)))
        this.faults.push(`execution ${this.#seen} passes over somebody`);
    }
  }
}

function levelOf({ request: { priority, model } }: PendingRequest): number {
  if (model.config.dynamicBatching?.priorityLevels === 0) return 0;
  return priority >= 1 && priority <= 3 ? priority : 3;
}

const numeric = (a: string, b: string): number => Number(a) - Number(b);

describe("a dynamic batcher, whatever comes", () => {
  it.each([1, 3])(
    "loses nobody, and lets nobody pass a higher level, on %i instances",
    (instances) =>
      fc.assert(
        fc.asyncProperty(steps, async (given) => {
          const stand = dynamicStand({
            ...levels,
            instances,
            maxBatchSize: 4,
            preferredBatchSize: [3],
            maxQueueDelayMicroseconds: 500,
          });
          const play = new Play(stand);
          await play.run(given);
          expect(play.faults).toEqual([]);
          expect(play.answers.toSorted(numeric)).toEqual(
            play.sent.map(({ request }) => request.id),
          );
          for (const level of [2, 3]) {
            const ids = new Set(
              play.sent.filter((one) => levelOf(one) === level).map(({ request }) => request.id),
            );
            const order = play.startedInOrder.filter((id) => ids.has(id));
            expect(order).toEqual(order.toSorted(numeric));
          }
          expect(stand.statistics.observe().pending).toBe(0);
        }),
        { numRuns: 300 },
      ),
  );

  it("answers in the order of arrival with preserve_ordering, whichever instance is done first", () =>
    fc.assert(
      fc.asyncProperty(steps, async (given) => {
        const stand = dynamicStand({ preserveOrdering: true, instances: 3, maxBatchSize: 4 });
        const play = new Play(stand);
        await play.run(given);
        expect(play.faults).toEqual([]);
        expect(play.answers.toSorted(numeric)).toEqual(play.sent.map(({ request }) => request.id));
        const ran = new Set(play.startedInOrder);
        const order = play.answers.filter((id) => ran.has(id));
        expect(order).toEqual(order.toSorted(numeric));
      }),
      { numRuns: 300 },
    ));
});
