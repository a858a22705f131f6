import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { turn } from "../../helpers/fake-clock.ts";
import type { SentRequest } from "../../helpers/requests.ts";
import { SequenceStand, type GivenSequences } from "./sequence-stand.ts";

const direct = { maxQueueDelayMicroseconds: 500, minimumSlotUtilization: 0.5 };
const oldest = {
  maxCandidateSequences: 3,
  preferredBatchSize: [],
  maxQueueDelayMicroseconds: 500,
  preserveOrdering: false,
};
const strategies: [string, GivenSequences][] = [
  ["direct", { direct }],
  ["oldest", { oldest }],
];

type Step = readonly [action: "say" | "finish" | "cancel" | "wait", which: number, how: number];

const steps = fc.array(
  fc.tuple(
    fc.constantFrom<Step[0][]>("say", "say", "say", "finish", "cancel", "wait"),
    fc.nat(5),
    fc.nat(9),
  ),
  { maxLength: 60 },
);

const names = ["a", "b", "c", "d", "e", "f"];

/** Does what the steps tell; then lets everything that is left run to its end. */
async function play(stand: SequenceStand, given: readonly Step[]): Promise<SentRequest[]> {
  const sent: SentRequest[] = [];
  let finished = 0;
  const say = sayer(stand);
  const finish = async (): Promise<void> => {
    if (finished < stand.ran.length) await stand.finish(finished++);
  };
  for (const [action, which, how] of given) {
    if (action === "say") sent.push(say(which, how));
    else if (action === "cancel") sent.at(-1 - how)?.call.cancel();
    else if (action === "wait") await stand.clock.advance(how / 3);
    else await finish();
  }
  await turn();
  const stopped = stand.scheduler.stop();
  while (stand.scheduler.inflight > 0) {
    await stand.clock.advance(1);
    await finish();
  }
  await stopped;
  return sent;
}

/** Sequences of one name may overlap once the first has its END: each START here takes a name of its own. */
function sayer(stand: SequenceStand): (which: number, how: number) => SentRequest {
  const current = [...names];
  let count = 0;
  return (which, how) => {
    const start = how < 3;
    if (start) current[which] = `${current[which]}${names[which]}`;
    const text = `${start ? "<" : ""}${current[which]}${count++}${how % 3 === 2 ? ">" : ""}`;
    return stand.say(text, undefined, how === 4 ? { timeoutMicroseconds: 2000 } : {});
  };
}

const sequenceOf = (id: string): string => id.replaceAll(/\d/gu, "");
const numberOf = (id: string): number => Number(id.replaceAll(/\D/gu, ""));

describe.each(strategies)("sequences with the %s strategy, whatever comes", (_, strategy) => {
  it("are answered once a request, in order, and never beside themselves", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (given) => {
        const stand = new SequenceStand({
          ...strategy,
          maxBatchSize: 2,
          instances: 2,
          maxSequenceIdleMicroseconds: 4000,
        });
        const sent = await play(stand, given);
        for (const { sink } of sent) {
          expect(sink.responses.length + (sink.error ? 1 : 0)).toBe(1);
        }
        const batches = stand.ran.map((ids) => ids.split("+").filter((id) => id !== ""));
        for (const ran of Map.groupBy(batches.flat(), sequenceOf).values()) {
          const order = ran.map(numberOf);
          expect(order).toEqual(order.toSorted((x, y) => x - y));
        }
        for (const batch of batches) {
          expect(new Set(batch.map(sequenceOf)).size).toBe(batch.length);
        }
        expect(stand.statistics.observe().pending).toBe(0);
      }),
      { numRuns: 500 },
    );
  });
});
