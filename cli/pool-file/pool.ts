import type { ModelPattern } from "../../protocol/model-pattern.ts";

/** Where the instances of a pool run; a GPU without an id is any of the machine's. */
export type PoolDevice =
  | { readonly kind: "auto" }
  | { readonly kind: "cpu" }
  | { readonly kind: "gpu"; readonly id?: number };

/** Who makes a pool's workers come and go: processes of this machine, nobody, KEDA, or a Deployment's scale. */
export type PoolScaler =
  | { readonly kind: "process" }
  | { readonly kind: "none" }
  | { readonly kind: "keda" }
  | { readonly kind: "kubernetes"; readonly namespace: string; readonly deployment: string };

/** A group of equal pool workers that rises and falls with the requests for its models. */
export interface Pool {
  readonly name: string;
  readonly models: readonly ModelPattern[];
  readonly minWorkers: number;
  readonly maxWorkers: number;
  /** The requests that one pool worker should have in hand. */
  readonly targetInFlight: number;
  /** From the last request until no pool worker above the minimum is left. */
  readonly idleMilliseconds: number;
  /** Over how long demand is averaged before the pool shrinks. */
  readonly stableWindowMilliseconds: number;
  readonly device: PoolDevice;
  /** Of the models resident on one pool worker; undefined stands for half of its machine's memory. */
  readonly memoryBudgetBytes: number | undefined;
  /** The envelopes that one pool worker takes from the queue at a time. */
  readonly concurrency: number;
  readonly scaler: PoolScaler;
}

/** What a pool has that says nothing else. */
export const poolDefaults: Omit<Pool, "name" | "models"> = {
  minWorkers: 0,
  maxWorkers: 4,
  targetInFlight: 32,
  idleMilliseconds: 60_000,
  stableWindowMilliseconds: 60_000,
  device: { kind: "auto" },
  memoryBudgetBytes: undefined,
  concurrency: 16,
  scaler: { kind: "process" },
};
