import type { Principal } from "../protocol/call.ts";
import { edgeKeyPrefix } from "../protocol/edge-key.ts";
import type { AuditDetails, AuditLog } from "../telemetry/audit-log.ts";
import type { KvNamespace } from "./kv-namespace.ts";

/** Has each write of keys to the edge told in the audit log. @param principal who makes it */
export function auditedKvNamespace(
  edge: KvNamespace,
  audit: AuditLog,
  principal: Principal,
): KvNamespace {
  const told = async (details: AuditDetails, write: () => Promise<void>): Promise<void> => {
    const record = { action: "key.publish", subject: "", principal, via: "command" } as const;
    try {
      await write();
    } catch (cause) {
      audit.write({ ...record, details, cause });
      throw cause;
    }
    audit.write({ ...record, details });
  };
  return {
    list: (prefix) => edge.list(prefix),
    put: (texts) => told({ written: ids([...texts.keys()]) }, () => edge.put(texts)),
    async remove(names) {
      if (names.length > 0) await told({ removed: ids(names) }, () => edge.remove(names));
    },
  };
}

/** Of so many keys that each is of interest, the ids; else how many they are. */
function ids(names: readonly string[]): readonly string[] | number {
  return names.length > 16 ? names.length : names.map((name) => name.slice(edgeKeyPrefix.length));
}
