import type { ModelConfig } from "./model-config.ts";

/**
 * True for a model that keeps something from one request of a sequence to the next, so that they all have to reach the
 * same instance. With `iterative_sequence` each request is a sequence of its own.
 */
export function keepsSequences({ sequenceBatching }: ModelConfig): boolean {
  return sequenceBatching?.iterativeSequence === false;
}
