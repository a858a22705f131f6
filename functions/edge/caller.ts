import type { EdgeCaller } from "../../protocol/edge-word.ts";
import { matchesPattern, modelPattern } from "../../protocol/model-pattern.ts";

/** Who calls, as far as the edge must know it to answer in a gateway's place. */
export interface Caller {
  /** Equal ones: the same caller. */
  readonly name: string;
  readonly tenant: string;
  readonly scopes: readonly unknown[];
  /** Patterns of names. */
  readonly models: readonly unknown[];
  /** What gateways are told. */
  readonly word: EdgeCaller;
}

/** The edge itself, where it asks for what it must know. "" is the tenant of nobody else. */
export const theEdge: Caller = {
  name: "token:edge",
  tenant: "",
  scopes: ["read"],
  models: ["*"],
  word: { kind: "token", claims: { sub: "edge", scope: "read" } },
};

/** True for what a gateway would let the caller do; everybody else is left to the gateway, which says why not. */
export function may(caller: Caller, scope: "infer" | "read", model: string): boolean {
  if (!caller.scopes.includes(scope)) return false;
  return (
    model === "" ||
    caller.models.some((one) => typeof one === "string" && matchesPattern(modelPattern(one), model))
  );
}
