import type { Logger } from "../telemetry/logger.ts";

/** Logs a problem that may last twice, however often it is met: when it comes and when it goes. */
export class TroubleLog {
  readonly #log: Logger;
  readonly #subject: string;
  #troubled = false;

  /** @param subject What fails, as in "pool 'a': observing its demand". */
  constructor(log: Logger, subject: string) {
    this.#log = log;
    this.#subject = subject;
  }

  failed(err: unknown): void {
    if (!this.#troubled) this.#log.warn(`${this.#subject} fails`, { err });
    this.#troubled = true;
  }

  succeeded(): void {
    if (this.#troubled) this.#log.info(`${this.#subject} works again`);
    this.#troubled = false;
  }
}
