import { InferenceError, StatusCode } from "../protocol/error.ts";
import type { Redis } from "../redis/connection.ts";
import { names } from "./names.ts";

/** Shorter than a connection waits for an answer. */
const longestMilliseconds = 4000;

/**
 * Tells when what was written to Redis is on disk, where Redis writes its file once a second and can be asked (WAITAOF).
 * Those who ask at the same time wait together.
 */
export class DiskMark {
  readonly #connection: Redis;
  #asking: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  /** @param connection of its own to a single Redis, with the role `commands`: it is held up while it waits */
  constructor(connection: Redis) {
    this.#connection = connection;
  }

  /** Resolves when all that Redis has answered until now is on disk. */
  passed(): Promise<void> {
    // Who comes while others wait may have written after they asked.
    this.#next ??= this.#asking.catch(() => {}).then(() => this.#ask());
    return this.#next;
  }

  #ask(): Promise<void> {
    this.#next = undefined;
    this.#asking = this.#wait();
    return this.#asking;
  }

  async #wait(): Promise<void> {
    // Redis waits for what this connection has written, and with it for all that came before.
    const marked = this.#mark();
    const asked = this.#connection.call("WAITAOF", "1", "0", String(longestMilliseconds));
    // Redis 8.0 says the same of a disk that has failed; but then it refuses to write.
    const sound = this.#mark();
    const [answer] = await Promise.all([asked, marked, sound]);
    if (Array.isArray(answer) && answer[0] === 1) return;
    throw new InferenceError(
      StatusCode.Unavailable,
      "the job could not be written to disk in time; it may run nevertheless",
    );
  }

  #mark(): Promise<unknown> {
    return this.#connection.set(names.diskMark, "", "PX", 60_000);
  }
}
