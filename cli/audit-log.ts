import { AuditFile } from "../telemetry/audit-file.ts";
import { type AuditLog, auditFields } from "../telemetry/audit-log.ts";
import type { LogFields, ServerLog } from "../telemetry/logger.ts";
import type { Settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** What `--audit-log` says for the ordinary log. */
export const ordinaryLog = "-";

/** An audit log that loses nothing when its process ends. */
export interface OpenAuditLog extends AuditLog {
  /** Resolves when everything is written. */
  close(): Promise<void>;
  /** The same at once, for who is about to end the process. */
  flush(): void;
}

/** Opens what `--audit-log` names. @param name which of a deployment's processes writes */
export function openAuditLog(
  { auditLog: file }: Settings,
  log: ServerLog,
  name?: string,
): OpenAuditLog {
  // The log has its own words for when, and for which process.
  const spare = ({ time: _time, process: _process, ...fields }: LogFields): void =>
    log.always("audit", fields);
  if (file === ordinaryLog) {
    return {
      write: (record) => spare(auditFields(record)),
      close: () => Promise.resolve(),
      flush: () => {},
    };
  }
  const opened = openAuditFile(file, { log, spare, process: name });
  process.on("exit", () => opened.flush());
  // Whoever listens for it ends the process.
  process.prependListener("uncaughtException", () => opened.flush());
  return opened;
}

/** Throws a UsageError when the file cannot be written. */
export function openAuditFile(
  file: string,
  options: Omit<ConstructorParameters<typeof AuditFile>[0], "file">,
): AuditFile {
  try {
    return new AuditFile({ file, ...options });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--audit-log: given ${file}, ${reason}`, { cause });
  }
}
