/** A call that stays open until one side ends it. */
export interface OpenCall {
  /** Finishes what is under way, then ends the call. */
  close(): void;
}

/** The calls that a closing server must ask to end, and with them those that came before their clients had heard of it. */
export class OpenCalls {
  readonly #calls = new Set<OpenCall>();
  #isClosing = false;

  add(call: OpenCall): void {
    this.#calls.add(call);
    if (this.#isClosing) call.close();
  }

  delete(call: OpenCall): void {
    this.#calls.delete(call);
  }

  close(): void {
    this.#isClosing = true;
    for (const call of this.#calls) call.close();
  }
}
