import { type AuditLog, auditFields, type AuditRecord } from "../../telemetry/audit-log.ts";

/** A line of the audit log without its time. */
export type AuditLine = ReturnType<typeof auditFields>;

/** An audit log that keeps its lines. */
export class AuditLines implements AuditLog {
  readonly lines: AuditLine[] = [];

  write(record: AuditRecord): void {
    this.lines.push(auditFields(record));
  }

  /** The lines that came since the last time. */
  take(): readonly AuditLine[] {
    return this.lines.splice(0);
  }
}
