import { userInfo } from "node:os";
import { auditedKeyStore } from "../auth/audited-key-store.ts";
import { auditedKvNamespace } from "../auth/audited-kv-namespace.ts";
import type { KeyStore } from "../auth/key-store.ts";
import type { KvNamespace } from "../auth/kv-namespace.ts";
import { anonymous, type Principal } from "../protocol/call.ts";
import { openAuditFile, ordinaryLog } from "./audit-log.ts";
import type { Settings } from "./settings.ts";

/** Stores of keys that tell of changes, and what resolves when they are written. */
export interface AuditedKeys {
  readonly audited: (store: KeyStore) => KeyStore;
  readonly auditedEdge: (edge: KvNamespace) => KvNamespace;
  close(): Promise<void>;
}

/** Has a command's changes of keys written to the file of `--audit-log`. Without one its own words are all there is. */
export function auditKeys({ auditLog: file }: Settings): AuditedKeys {
  if (file === ordinaryLog) {
    return {
      audited: (store) => store,
      auditedEdge: (edge) => edge,
      close: () => Promise.resolve(),
    };
  }
  const audit = openAuditFile(file, {
    log: { error: tell, info: () => {} },
    spare: (fields) => tell(JSON.stringify(fields)),
    process: "keys",
  });
  const principal = whoRuns();
  return {
    audited: (store) => auditedKeyStore(store, audit, principal),
    auditedEdge: (edge) => auditedKvNamespace(edge, audit, principal),
    close: () => audit.close(),
  };
}

function tell(message: string): void {
  process.stderr.write(`tidepool: ${message}\n`);
}

/** The user of the system: whoever may change the store needs no key. */
function whoRuns(): Principal {
  return { ...anonymous, name: `user:${userName()}` };
}

/** In a container there may be none of that number. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}
