import type { Clock } from "../serving/clock.ts";

/** Beyond this a model that can wait does. */
const mostUnreadBytes = 1024 * 1024;
const lookMilliseconds = 2000;

export interface ReaderCreditOptions {
  readonly clock: Clock;
  /** True while the gateway of the client lives. */
  readonly isWaitedFor: () => Promise<boolean>;
  /** It does not live any more. */
  readonly onGone: () => void;
}

interface Unread {
  readonly number: number;
  readonly bytes: number;
}

/**
 * What a pool worker may send to one client before that has read what came earlier. The gateway tells how far that is;
 * as it may be told twice, or late, it names the last reply and not how many.
 */
export class ReaderCredit {
  readonly #options: ReaderCreditOptions;
  /** In the order of their numbers. */
  #unread: Unread[] = [];
  #unreadBytes = 0;
  #read = -1;
  #room: PromiseWithResolvers<void> | undefined;
  #cancelLook = (): void => {};

  constructor(options: ReaderCreditOptions) {
    this.#options = options;
  }

  /** Set while the client is behind. */
  get room(): Promise<void> | undefined {
    return this.#room?.promise;
  }

  /** A reply is on its way. */
  sent(number: number, bytes: number): void {
    // A request that runs a second time says again what the client has read.
    if (number <= this.#read) return;
    this.#unread.push({ number, bytes });
    this.#unreadBytes += bytes;
    if (this.#unreadBytes <= mostUnreadBytes || this.#room) return;
    this.#room = Promise.withResolvers();
    this.#lookLater();
  }

  /** The client has read this reply, and all before it. */
  read(number: number): void {
    if (number <= this.#read) return;
    this.#read = number;
    this.#unread = this.#unread.filter((one) => one.number > number);
    this.#unreadBytes = this.#unread.reduce((sum, { bytes }) => sum + bytes, 0);
    if (this.#unreadBytes <= mostUnreadBytes) this.#makeRoom();
  }

  /** Nobody waits any more. */
  end(): void {
    this.#makeRoom();
  }

  #makeRoom(): void {
    this.#cancelLook();
    this.#room?.resolve();
    this.#room = undefined;
  }

  #lookLater(): void {
    this.#cancelLook = this.#options.clock.after(lookMilliseconds, () => void this.#look());
  }

  /** A gateway that died tells nothing. */
  async #look(): Promise<void> {
    const lives = await this.#options.isWaitedFor().catch(() => true);
    if (!this.#room) return;
    if (lives) this.#lookLater();
    else this.#options.onGone();
  }
}
