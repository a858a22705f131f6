import { CallerLimits, type LimitRules } from "../../auth/limits/caller-limits.ts";
import { noLimits } from "../../auth/limits/limits.ts";
import { memoryPoints } from "../../auth/limits/points.ts";
import { Admission, type AdmissionOptions } from "../../gateway/admission.ts";
import { Refusals } from "../../gateway/refusals.ts";
import type { Call } from "../../protocol/call.ts";
import type { InferenceError } from "../../protocol/error.ts";
import { echo, type MemoryEngine } from "../helpers/memory-engine.ts";
import { modelInput, modelOutput, servedModel } from "../helpers/served-model.ts";

/** What lets in at servers of tests, with room for all unless the test says otherwise. */
export interface LimitStand {
  readonly admission: Admission;
  /** As in `["key-requests default", 2]`. */
  refused(): readonly (readonly [what: string, count: number])[];
}

export function openLimits(
  rules: Partial<LimitRules>,
  more: Partial<AdmissionOptions> = {},
): LimitStand {
  const refusals = new Refusals();
  const limits = new CallerLimits({
    rules: { eachKey: noLimits, eachTenant: noLimits, tenants: new Map(), ...rules },
    points: memoryPoints(),
    now: () => performance.now(),
    today: Date.now,
    onRefused: (reason, tenant) => refusals.count(reason, tenant),
  });
  const most = { maxRequests: 10_000, maxModelRequests: 10_000, maxBytes: 2 ** 30 };
  return {
    admission: new Admission({ ...most, limits, refusals, ...more }),
    refused: () =>
      Array.from(refusals, ({ reason, tenant, count }) => [`${reason} ${tenant}`, count] as const),
  };
}

/** A model whose answers a test holds back. */
export class HeldModel {
  readonly name: string;
  #held: PromiseWithResolvers<void> = Promise.withResolvers();
  #waiting = 0;

  constructor(engine: MemoryEngine, name = "held") {
    this.name = name;
    const config = {
      maxBatchSize: 8,
      input: [modelInput("INPUT", "TYPE_FP32", [-1])],
      output: [modelOutput("OUTPUT", "TYPE_FP32", [-1])],
    };
    const wait = (call: Call): Promise<void> => this.#wait(call);
    engine.add(servedModel(name, config), async function* (request, call) {
      await wait(call);
      yield echo(request);
    });
  }

  /** Requests that wait for the test. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Answers those that wait. */
  release(): void {
    this.#held.resolve();
    this.#held = Promise.withResolvers();
  }

  async #wait(call: Call): Promise<void> {
    this.#waiting++;
    const cancelled = new Promise<never>((_, reject) =>
      call.onCancel((reason: InferenceError) => reject(reason)),
    );
    try {
      await Promise.race([this.#held.promise, cancelled]);
    } finally {
      this.#waiting--;
    }
  }
}
