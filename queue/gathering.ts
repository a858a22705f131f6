/** An envelope is one job of one pool worker: more requests than this could keep others busy, too. */
export const maxRequests = 64;
/** Beside a model that is so slow that nothing comes back meanwhile, the delay is nothing. */
const gatherMilliseconds = 2;

/**
 * How many requests an envelope may have.
 * @param targetInFlight what one pool worker should have in hand: as many again may come with them, to be at hand next
 */
export function requestsPerEnvelope(targetInFlight: number): number {
  return Math.min(maxRequests, 2 * targetInFlight);
}

/**
 * Decides when requests that may share an envelope set out. An envelope costs as much as many requests, so those that
 * come while others are out wait until they are as many: then one envelope fills while another is being worked on.
 */
export class Gathering<Request> {
  readonly #post: (requests: readonly Request[]) => void;
  #waiting: Request[] = [];
  #out = 0;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

  /** @param post is given them in their order */
  constructor(post: (requests: readonly Request[]) => void) {
    this.#post = post;
  }

  /** Neither waits anything, nor is anything out. */
  get isIdle(): boolean {
    return this.#waiting.length + this.#out === 0;
  }

  add(request: Request): void {
    this.#waiting.push(request);
    this.#flushIfDue();
  }

  /** Takes back a request that may wait here. */
  remove(request: Request): void {
    const index = this.#waiting.indexOf(request);
    if (index !== -1) this.#waiting.splice(index, 1);
  }

  /** One that was here is out. */
  began(): void {
    this.#out++;
  }

  /** One that was out is answered. */
  ended(): void {
    this.#out--;
    this.#flushIfDue();
  }

  #flushIfDue(): void {
    const { length } = this.#waiting;
    if (length === 0) return;
    // With all that arrives in the same turn of the event loop.
    if (length >= this.#out || length >= maxRequests)
      this.#immediate ??= setImmediate(() => this.#flush());
    else this.#timer ??= setTimeout(() => this.#flush(), gatherMilliseconds);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
    [this.#timer, this.#immediate] = [undefined, undefined];
    const requests = this.#waiting;
    this.#waiting = [];
    this.#post(requests);
  }
}
