import { InferenceError, StatusCode } from "../protocol/error.ts";
import { modelPattern } from "../protocol/model-pattern.ts";
import { tenantForm, tenantPattern } from "../protocol/tenant.ts";
import { allModels, type Caller } from "./caller.ts";
import { scopeOf } from "./scope.ts";

/** Which claims of a token say what. */
export interface ClaimNames {
  readonly tenant: string;
  /** Names of scopes: a list, or a text with blanks between them. */
  readonly scope: string;
  /** Patterns of the names of models, likewise. */
  readonly models: string;
}

const longestText = 256;
const mostEntries = 100;

/**
 * The caller that the claims of a verified token describe. Without a claim about scopes there are none; without one about
 * models it may be any model, because the scopes already say what may be done.
 */
export function callerOf(
  claims: Readonly<Record<string, unknown>>,
  { tenant, scope, models }: ClaimNames,
): Caller {
  const subject = text("sub", claims["sub"]);
  return {
    name: `token:${subject}`,
    title: subject,
    tenant: tenantIn(tenant, claims[tenant]),
    scopes: new Set(
      entries(scope, claims[scope])
        .map(scopeOf)
        .filter((one) => one !== undefined),
    ),
    models:
      claims[models] === undefined ? allModels : entries(models, claims[models]).map(modelPattern),
  };
}

function tenantIn(claim: string, value: unknown = "default"): string {
  if (typeof value === "string" && tenantPattern.test(value)) return value;
  throw unfit(claim, tenantForm);
}

function entries(claim: string, value: unknown): readonly string[] {
  if (value === undefined) return [];
  const list = typeof value === "string" ? value.split(" ").filter((one) => one !== "") : value;
  if (!Array.isArray(list) || list.length > mostEntries)
    throw unfit(claim, "a short list of texts");
  return list.map((one) => text(claim, one));
}

function text(claim: string, value: unknown): string {
  if (typeof value === "string" && value !== "" && value.length <= longestText) return value;
  throw unfit(claim, `a text of 1 to ${longestText} characters`);
}

function unfit(claim: string, expected: string): InferenceError {
  return new InferenceError(
    StatusCode.Unauthenticated,
    `token: its claim '${claim}' cannot be used, expected ${expected}`,
  );
}
