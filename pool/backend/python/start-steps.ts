import { InferenceError, StatusCode } from "../../../protocol/error.ts";
import type { HeadReader } from "./head-reader.ts";
import type { PythonProcess } from "./process.ts";

/** The start of a process, step by step: each is asked for, and answered before the next one. */
export class StartSteps {
  readonly #process: PythonProcess;
  readonly #timeoutMilliseconds: number;
  /** The one that goes on. */
  #step: PromiseWithResolvers<unknown> | undefined;
  #ended: InferenceError | undefined;

  constructor(process: PythonProcess, timeoutMilliseconds: number) {
    this.#process = process;
    this.#timeoutMilliseconds = timeoutMilliseconds;
  }

  /** Rejects, and ends the process, when the model refuses it, or the process does not live or hurry. */
  async take(step: string, ...fields: readonly unknown[]): Promise<unknown> {
    const asked = Promise.withResolvers<unknown>();
    this.#step = asked;
    if (this.#ended) asked.reject(this.#ended);
    const late = setTimeout(() => {
      const seconds = this.#timeoutMilliseconds / 1000;
      this.#process.kill(`it took longer than --python-start-timeout (${seconds} s)`);
    }, this.#timeoutMilliseconds);
    this.#process.send(JSON.stringify([step, ...fields]));
    try {
      return await asked.promise;
    } catch (error) {
      this.#process.kill("it could not start");
      throw error;
    } finally {
      clearTimeout(late);
      this.#step = undefined;
    }
  }

  /** The process has answered. */
  answered(fields: HeadReader): void {
    const error = fields.optional((some) => some.text());
    if (error === undefined) this.#step?.resolve(fields.value());
    else this.#step?.reject(new InferenceError(StatusCode.Internal, `Internal: ${error}`));
  }

  /** The process is gone. @param complaint the last line that it has printed about itself */
  ended(cause: string, complaint: string | undefined): void {
    const text = `the Python process ended while it loaded the model: ${cause}`;
    const whole = complaint === undefined ? text : `${text}: ${complaint}`;
    this.#ended = new InferenceError(StatusCode.Internal, whole);
    this.#step?.reject(this.#ended);
  }
}
