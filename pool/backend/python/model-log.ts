import type { Logger } from "../../../telemetry/logger.ts";

const keptLines = 20;

/** What a model says by its logger and prints, as lines of the server's log that name the model. */
export class ModelLog {
  readonly #log: Logger;
  #fields: Readonly<Record<string, string>>;
  /** What it last wrote to stderr; nobody asks once it has started. */
  #complaints: string[] | undefined = [];

  constructor(log: Logger, model: string, version: string) {
    this.#log = log;
    this.#fields = { model, version };
  }

  /** From now on lines name the instance, too. */
  named(instance: string): void {
    this.#fields = { ...this.#fields, instance };
  }

  started(): void {
    this.#complaints = undefined;
  }

  /** The last line on stderr with something on it, until it has started. */
  get lastComplaint(): string | undefined {
    return this.#complaints?.findLast((line) => line.trim() !== "");
  }

  /** By the model's logger. */
  said(level: string, text: string): void {
    if (level === "ERROR") this.#log.error(text, this.#fields);
    else if (level === "WARNING") this.#log.warn(text, this.#fields);
    else if (level === "INFO") this.#log.info(text, this.#fields);
    else this.#log.verbose(1, text, this.#fields);
  }

  printed(stream: "stdout" | "stderr", line: string): void {
    if (stream === "stderr" && this.#complaints) {
      this.#complaints = [...this.#complaints, line].slice(-keptLines);
    }
    this.#log.info(line, { ...this.#fields, stream });
  }
}
