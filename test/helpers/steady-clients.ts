import { busyBody } from "./busy-model.ts";
import type { HttpClient } from "./http-client.ts";

/** What became of one request. */
export interface SeenAnswer {
  readonly sent: number;
  /** 0 when the connection broke. */
  readonly status: number;
  /** What the model gave back. */
  readonly got: unknown;
  readonly retryAfter: string | undefined;
  readonly milliseconds: number;
}

/**
 * Clients that send one number after another to a busy model, each number once, so that an answer that is wrong, or
 * somebody else's, shows.
 */
export class SteadyClients {
  readonly seen: SeenAnswer[] = [];
  readonly #over: Promise<unknown>;
  #number = 1000;
  #running = true;

  constructor(https: readonly HttpClient[], model: string, clients: number) {
    const each = Array.from({ length: clients }, (_, i) => https[i % https.length]);
    this.#over = Promise.all(each.flatMap((http) => (http ? [this.#run(http, model)] : [])));
  }

  /** No new requests from here on; resolves when all that were sent have ended. */
  async stop(): Promise<readonly SeenAnswer[]> {
    this.#running = false;
    await this.#over;
    return this.seen;
  }

  async #run(http: HttpClient, model: string): Promise<void> {
    while (this.#running) this.seen.push(await this.#ask(http, model));
  }

  async #ask(http: HttpClient, model: string): Promise<SeenAnswer> {
    const sent = this.#number++;
    const began = performance.now();
    const ended = (status: number, got?: unknown, retryAfter?: string): SeenAnswer => {
      return { sent, status, got, retryAfter, milliseconds: performance.now() - began };
    };
    try {
      const { status, text, headers } = await http.infer(model, busyBody(sent));
      const got = status === 200 ? JSON.parse(text).outputs[0].data[0] : text;
      return ended(status, got, headers["retry-after"]);
    } catch {
      return ended(0);
    }
  }
}
