import { appendFileSync, closeSync, openSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { type AuditLog, auditFields, type AuditRecord } from "./audit-log.ts";
import type { LogFields, Logger } from "./logger.ts";

export interface AuditFileOptions {
  readonly file: string;
  /** Where it is told that the file cannot be written. */
  readonly log: Pick<Logger, "error" | "info">;
  /** Takes the lines that the file does not. */
  readonly spare: (fields: LogFields) => void;
  /** Which of several processes writes, as in the log. */
  readonly process?: string | undefined;
}

/** Lines that may wait for a slow disk; the spare place takes what is more. */
const mostWaiting = 10_000;
const mode = 0o600;

/**
 * The audit log in a file of its own, one JSON object a line. The file is opened for every write: changes are rare, and so
 * whoever moves it away to keep it need not tell.
 */
export class AuditFile implements AuditLog {
  readonly #options: AuditFileOptions;
  /** Not in the file yet, those of the write that is under way among them. */
  #waiting: LogFields[] = [];
  #writing: Promise<void> | undefined;
  /** The last write ended within a line. */
  #torn = false;
  #failing = false;

  /** Throws the system's error for a file that cannot be written. */
  constructor(options: AuditFileOptions) {
    closeSync(openSync(options.file, "a", mode));
    this.#options = options;
  }

  write(record: AuditRecord): void {
    const { process } = this.#options;
    const fields = auditFields(record);
    if (this.#waiting.length >= mostWaiting) {
      this.#options.spare(fields);
      return;
    }
    const time = new Date().toISOString();
    this.#waiting.push({ time, ...(process !== undefined && { process }), ...fields });
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when every line is in the file, or in the spare place. */
  async close(): Promise<void> {
    await this.#writing;
  }

  /** The same for a process that cannot wait. A line whose write is under way may then be there twice. */
  flush(): void {
    const lines = this.#waiting.splice(0);
    if (lines.length === 0) return;
    try {
      appendFileSync(this.#options.file, text(lines), { mode });
    } catch {
      lines.forEach(this.#options.spare);
    }
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = [...this.#waiting];
      const failure = await this.#append(text(lines)).catch((cause: unknown) => ({ cause }));
      this.#waiting.splice(0, lines.length);
      this.#tell(failure?.cause);
      if (failure) lines.forEach(this.#options.spare);
    }
    this.#writing = undefined;
  }

  async #append(lines: string): Promise<void> {
    const file = await open(this.#options.file, "a", mode);
    try {
      await this.#writeWhole(file, Buffer.from(this.#torn ? `\n${lines}` : lines));
    } finally {
      await file.close();
    }
  }

  /** A disk that is full may take a part. */
  async #writeWhole(file: FileHandle, bytes: Buffer): Promise<void> {
    let written = 0;
    try {
      while (written < bytes.length) {
        const { bytesWritten } = await file.write(bytes, written);
        written += bytesWritten;
      }
    } finally {
      if (written > 0) this.#torn = written < bytes.length;
    }
  }

  /** Once, until it goes well again. */
  #tell(err: unknown): void {
    const { file, log } = this.#options;
    if (err !== undefined && !this.#failing) {
      log.error(`audit log ${file} cannot be written; its lines are in this log until it can`, {
        err,
      });
    }
    if (err === undefined && this.#failing) log.info(`audit log ${file} is written again`);
    this.#failing = err !== undefined;
  }
}

function text(lines: readonly LogFields[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}
