import { anonymous, type Principal } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import { matchesPattern, modelPattern, type ModelPattern } from "../protocol/model-pattern.ts";
import type { Limits } from "./limits/limits.ts";
import { type Scope, scopes } from "./scope.ts";

/** Who calls, and what they may do. */
export interface Caller extends Principal {
  readonly scopes: ReadonlySet<Scope>;
  /** Names of the models that exist for the caller. */
  readonly models: readonly ModelPattern[];
  /** Of the key that was shown; absent for callers without one, whom their tenant's bound alone. */
  readonly limits?: Limits;
}

/** The pattern of all models. */
export const allModels: readonly ModelPattern[] = [modelPattern("*")];

/** The caller where nobody is asked for a key. */
export const anonymousCaller: Caller = {
  ...anonymous,
  scopes: new Set(scopes),
  models: allModels,
};

/** True for a model that exists for the caller. */
function mayUseModel({ models }: Caller, model: string): boolean {
  return models.some((pattern) => matchesPattern(pattern, model));
}

/** What a list tells the caller: only of models that exist for them. */
export function seenBy<Entry extends { readonly name: string }>(
  caller: Caller,
  entries: readonly Entry[],
): readonly Entry[] {
  return mayUseAllModels(caller)
    ? entries
    : entries.filter(({ name }) => mayUseModel(caller, name));
}

/** True for a caller from whom no model is kept. */
export function mayUseAllModels({ models }: Caller): boolean {
  return models.some(({ text }) => text === "*");
}

/**
 * Throws PERMISSION_DENIED unless the caller has the scope, for the model if it is about one. The text is the same whether
 * there is such a model or not.
 *
 * @param model "" where it is about none
 */
export function requireScope(caller: Caller, scope: Scope, model: string): void {
  if (!caller.scopes.has(scope)) {
    const given = [...caller.scopes].join(", ") || "none";
    throw denied(`scope: the caller has ${given}, expected ${scope}`);
  }
  if (model !== "" && !mayUseModel(caller, model)) {
    const shown = model.length > longestShown ? `${model.slice(0, longestShown)}…` : model;
    throw denied(`model '${shown}': the caller has scope ${scope} for other models only`);
  }
}

const longestShown = 64;

function denied(text: string): InferenceError {
  return new InferenceError(StatusCode.PermissionDenied, text);
}
