import type { Authenticator, Credentials } from "../auth/authenticator.ts";
import { anonymousCaller, type Caller, requireScope } from "../auth/caller.ts";
import type { EdgeTrust } from "../auth/edge-trust.ts";
import type { Need } from "./policy.ts";

/** How callers are told apart; where there is none of it, everybody may do everything. */
export interface Access {
  readonly authenticator: Authenticator;
  /** `--health-anonymous`: whether the server lives and is ready may be asked without a key. */
  readonly healthAnonymous: boolean;
  /** `--edge-secret-file`: calls that the edge Worker has signed are those of the caller that it found. */
  readonly edge?: EdgeTrust | undefined;
}

/** What a call is about. */
export interface Wanted {
  readonly need: Need;
  /** "" where it is about none. */
  readonly model: string;
}

/**
 * The caller, if the call may be answered; at once where the caller is known. Throws or rejects with UNAUTHENTICATED,
 * PERMISSION_DENIED, or UNAVAILABLE.
 */
export function admit(
  access: Access,
  given: Credentials,
  wanted: Wanted,
): Caller | Promise<Caller> {
  if (isOpen(access, wanted)) return anonymousCaller;
  const known = access.authenticator.known(given);
  return known ? checked(known, wanted) : authenticated(access, given, wanted);
}

/** The same for who has another way to go: undefined where the caller is not known at once, or may not call. */
export function admitKnown(
  { authenticator }: Access,
  given: Credentials,
  wanted: Wanted,
): Caller | undefined {
  try {
    const known = authenticator.known(given);
    return known && checked(known, wanted);
  } catch {
    return undefined;
  }
}

async function authenticated(
  { authenticator }: Access,
  given: Credentials,
  wanted: Wanted,
): Promise<Caller> {
  return checked(await authenticator.authenticate(given), wanted);
}

function isOpen({ healthAnonymous }: Access, { need }: Wanted): boolean {
  return need === "health" && healthAnonymous;
}

/** The caller, who is known already, if the call may be answered. Health needs a key, where it needs one, but no scope. */
export function checked(caller: Caller, { need, model }: Wanted): Caller {
  if (need !== "health") requireScope(caller, need, model);
  return caller;
}
