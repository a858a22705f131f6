import type { Principal } from "../protocol/call.ts";
import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { AuditAction, AuditDetails, AuditLog } from "../telemetry/audit-log.ts";
import type { KeyRecord } from "./key-record.ts";
import type { KeyStore } from "./key-store.ts";

/** Has each change of a store's keys told in the audit log. @param principal who makes them */
export function auditedKeyStore(store: KeyStore, audit: AuditLog, principal: Principal): KeyStore {
  return {
    ...store,
    async replace(before, after) {
      const record = after ?? before;
      const tell = (cause?: unknown): void =>
        audit.write({
          action: actionOf(before, after),
          subject: record?.id ?? "",
          principal,
          via: "command",
          details: purposeOf(record),
          cause,
        });
      try {
        const done = await store.replace(before, after);
        tell(done ? undefined : changedMeanwhile());
        return done;
      } catch (cause) {
        tell(cause);
        throw cause;
      }
    },
  };
}

function actionOf(before: KeyRecord | undefined, after: KeyRecord | undefined): AuditAction {
  if (!before) return "key.create";
  if (!after) return "key.revoke";
  return before.sha256 === after.sha256 ? "key.update" : "key.rotate";
}

/** All that is no secret, not even as a digest. */
function purposeOf(record: KeyRecord | undefined): AuditDetails {
  const { id: _id, sha256: _sha256, previous: _previous, ...purpose } = { ...record };
  return purpose;
}

function changedMeanwhile(): InferenceError {
  return new InferenceError(StatusCode.Unavailable, "somebody else changed it now");
}
