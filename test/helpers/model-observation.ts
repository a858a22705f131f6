import { LatencyHistogram } from "../../telemetry/latency-histogram.ts";
import type { ModelObservation, PhaseObservation } from "../../telemetry/model-observation.ts";

/** A phase that took so long, once for each number. */
export function phaseOf(...microseconds: readonly number[]): PhaseObservation {
  const histogram = new LatencyHistogram();
  for (const one of microseconds) histogram.observe(one);
  return { microseconds: microseconds.reduce((sum, one) => sum + one, 0), histogram };
}

/** A model version that answered three requests, for tests that read metrics. */
export function observedModel(changes: Partial<ModelObservation> = {}): ModelObservation {
  return {
    name: "text_classifier",
    version: "1",
    tags: {},
    success: 3,
    failures: { REJECTED: 1, CANCELED: 2, BACKEND: 0, OTHER: 4 },
    inferenceCount: 24,
    executionCount: 2,
    pending: 5,
    loadSeconds: 0.25,
    phases: {
      request: phaseOf(150, 300, 900),
      queue: phaseOf(60, 70, 80),
      computeInput: phaseOf(1, 2, 3),
      computeInfer: phaseOf(150, 160, 170),
      computeOutput: phaseOf(1, 1, 1),
    },
    ...changes,
  };
}
