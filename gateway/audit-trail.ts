import type { Authenticator, Credentials } from "../auth/authenticator.ts";
import { anonymous, type Principal } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { AuditDetails, AuditLog, AuditRecord } from "../telemetry/audit-log.ts";

/** A call that changes something, as it has come. */
export type ChangingCall = Pick<
  AuditRecord,
  "action" | "subject" | "via" | "address" | "requestId"
> & { readonly credentials: Credentials };

/** One change, from the call that asks for it to its line in the audit log. */
export interface Change {
  /** Says more about what is changed. */
  tell(details: AuditDetails): void;
  /**
   * Writes the line, once.
   *
   * @param caller undefined where it was not let in
   * @param cause what was thrown instead of a change
   */
  end(caller: Principal | undefined, cause?: unknown): void;
}

/** Has every change that calls make, and every one that is refused them, told in the audit log. */
export interface AuditTrail {
  begin(call: ChangingCall): Change;
}

export interface AuditTrailOptions {
  readonly log: AuditLog;
  /** Without it nobody is asked for a key. */
  readonly authenticator: Authenticator | undefined;
  /** A monotonic clock, in milliseconds. @defaultValue performance.now */
  readonly now?: () => number;
}

/** Lines of refusals in a second: whoever may do nothing shall not fill the disk. */
const mostRefusals = 20;

/**
 * Makes the trail of a gateway. Who cannot be told is not written of, because strangers are many; those who are known and
 * may not have a line each, up to a bound: the next line tells how many were left out.
 */
export function auditTrail({
  log,
  authenticator,
  now = () => performance.now(),
}: AuditTrailOptions): AuditTrail {
  const refusals = boundedRefusals(now);
  const nobody = authenticator ? undefined : anonymous;
  return {
    begin({ credentials, ...call }) {
      let details: AuditDetails = {};
      let ended = false;
      return {
        tell: (more) => (details = { ...details, ...more }),
        end(caller, cause) {
          const principal = caller ?? authenticator?.known(credentials) ?? nobody;
          if (!principal || ended) return;
          ended = true;
          if (isRefusal(cause)) {
            const leftOut = refusals();
            if (leftOut === undefined) return;
            if (leftOut > 0) details = { ...details, refusalsLeftOut: leftOut };
          }
          log.write({ ...call, principal, details, ...(cause !== undefined && { cause }) });
        },
      };
    },
  };
}

function isRefusal(cause: unknown): boolean {
  return cause instanceof InferenceError && cause.code === StatusCode.PermissionDenied;
}

/** Tells of each refusal how many before it have no line; undefined where it has none itself. */
function boundedRefusals(now: () => number): () => number | undefined {
  let since = -Infinity;
  let count = 0;
  return () => {
    let leftOut = 0;
    if (now() - since >= 1000) {
      leftOut = Math.max(count - mostRefusals, 0);
      since = now();
      count = 0;
    }
    count += 1;
    return count > mostRefusals ? undefined : leftOut;
  };
}
