import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import { EnsembleScheduler } from "../../../serving/ensemble/ensemble-scheduler.ts";
import { ModelStatisticsRecorder } from "../../../serving/model-statistics.ts";
import type { PendingRequest } from "../../../serving/scheduler.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { pendingRequest, requestFor, type SentRequest } from "../../helpers/requests.ts";
import { modelInput, modelOutput, servedModel } from "../../helpers/served-model.ts";
import { held, step } from "./held-member.ts";

type Move = readonly [what: "send" | "answer" | "fail" | "cancel", which: number];

const moves = fc.array(
  fc.tuple(
    fc.constantFrom<Move[0][]>("send", "send", "answer", "answer", "answer", "fail", "cancel"),
    fc.nat(20),
  ),
  { maxLength: 120, size: "max" },
);

/** Two steps at the same time, and one that adds up what they have made of the request's number: 10 and 100 of it. */
class Play {
  readonly sent: SentRequest[] = [];
  readonly faults: string[] = [];
  readonly scheduler: EnsembleScheduler;
  readonly #clock = new FakeClock();
  readonly statistics = new ModelStatisticsRecorder({ name: "e", version: "1", tags: {} });
  readonly #members = { join: held("join"), tens: held("tens"), hundreds: held("hundreds") };
  readonly #over = new Set<PendingRequest>();
  readonly #model = servedModel("e", {
    platform: "ensemble",
    maxBatchSize: 8,
    input: [modelInput("IN", "TYPE_FP32", [1])],
    output: [modelOutput("OUT", "TYPE_FP32", [1])],
    ensembleScheduling: {
      step: [
        step("join", { A: "t", B: "h" }, { Y: "OUT" }),
        step("tens", { A: "IN" }, { Y: "t" }),
        step("hundreds", { A: "IN" }, { Y: "h" }),
      ],
      maxInflightRequests: 0,
    },
  });

  constructor() {
    const { join, tens, hundreds } = this.#members;
    const versions = [join.version, tens.version, hundreds.version];
    const { statistics } = this;
    this.scheduler = new EnsembleScheduler(this.#model, versions, {
      statistics,
      clock: this.#clock,
    });
  }

  async run(given: readonly Move[]): Promise<void> {
    for (const [what, which] of given) {
      if (what === "send") this.#send();
      else if (what === "cancel") this.#cancel(which);
      else this.#end(which, what === "fail");
      await this.#clock.advance(1);
    }
    const stopped = this.scheduler.stop();
    while (this.#end(0, false));
    await stopped;
  }

  #send(): void {
    const bytes = new Uint8Array(Float32Array.of(this.sent.length).buffer);
    const inputs = [{ name: "IN", datatype: "FP32", shape: [1, 1], bytes }] as const;
    const sent = pendingRequest(requestFor(this.#model, [1, 1], { inputs }), this.#clock.now());
    this.sent.push(sent);
    this.scheduler.enqueue(sent);
  }

  /** Who is not answered yet is at once. */
  #cancel(which: number): void {
    const sent = this.sent[which % Math.max(1, this.sent.length)];
    sent?.call.cancel();
    if (sent && !sent.sink.ended) this.faults.push(`${this.sent.indexOf(sent)} still waits`);
  }

  /** Ends one of the steps that run, also where nobody waits for it any more; false when there is none. */
  #end(which: number, fails: boolean): boolean {
    const { join, tens, hundreds } = this.#members;
    const running = [join, tens, hundreds].flatMap((member) =>
      member.taken.filter((one) => !this.#over.has(one)).map((pending) => ({ member, pending })),
    );
    const chosen = running[which % Math.max(1, running.length)];
    if (!chosen) return false;
    const { member, pending } = chosen;
    this.#over.add(pending);
    const [a = 0, b = 0] = pending.request.inputs.map(({ bytes }) => numberIn(bytes));
    const made = { join: a + b, tens: 10 * a, hundreds: 100 * a }[member.version.model.name] ?? 0;
    if (fails) pending.sink.fail(new InferenceError(StatusCode.Internal, "no luck"));
    else member.answer({ Y: made }, [1, 1], pending);
    return true;
  }
}

function numberIn(bytes: Uint8Array | undefined): number {
  return new Float32Array(bytes?.slice().buffer ?? new ArrayBuffer(4))[0] ?? NaN;
}

describe("an ensemble, whatever comes", () => {
  it("loses no request, answers none twice, and none with what another has made", () =>
    fc.assert(
      fc.asyncProperty(moves, async (given) => {
        const play = new Play();
        await play.run(given);
        expect(play.faults).toEqual([]);
        for (const [number, { sink }] of play.sent.entries()) {
          const made = sink.responses.map(({ outputs: [out] }) => numberIn(out?.bytes));
          expect(sink.error ? [...made, "failed"] : made).toEqual([
            sink.error ? "failed" : 110 * number,
          ]);
        }
        const answered = play.sent.filter(({ sink }) => sink.responses.length > 0).length;
        const { success, failures } = play.statistics.observe();
        expect(success).toBe(answered);
        expect(failures.OTHER + failures.CANCELED).toBe(play.sent.length - answered);
      }),
      { numRuns: 300 },
    ));
});
