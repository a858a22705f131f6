import { errorOf, type HttpClient } from "./http-client.ts";

/** What became of one request of a sequence. */
export interface SeenSum {
  readonly id: number;
  /** It began its sequence. */
  readonly start: boolean;
  readonly status: number;
  /** The sum that the model gave, or the text of its error. */
  readonly got: unknown;
  /** What the client itself has added up. */
  readonly sum: number;
  readonly milliseconds: number;
}

/**
 * Clients that each add up numbers by sequences of a model that sums, one request after the other through one gateway after
 * the other. Who is refused begins anew.
 */
export class SteadySequences {
  readonly seen: SeenSum[] = [];
  readonly #https: readonly HttpClient[];
  readonly #model: string;
  readonly #over: Promise<unknown>;
  readonly #ending = new AbortController();

  /** @param requests of each sequence, START and END included */
  constructor(
    https: readonly HttpClient[],
    model: string,
    { clients, requests }: { readonly clients: number; readonly requests: number },
  ) {
    this.#https = https;
    this.#model = model;
    const each = Array.from({ length: clients }, (_, i) => this.#run(i + 1, requests));
    this.#over = Promise.all(each);
  }

  /** Resolves when all sequences that were begun have ended. */
  async stop(): Promise<readonly SeenSum[]> {
    this.#ending.abort();
    await this.#over;
    return this.seen;
  }

  async #run(id: number, requests: number): Promise<void> {
    for (let turn = 0; !this.#ending.signal.aborted; turn++) {
      let sum = 0;
      for (let i = 0; i < requests; i++) {
        const value = id + i + turn;
        sum += value;
        const http = this.#https[(id + i) % this.#https.length];
        const flags = { sequence_start: i === 0, sequence_end: i === requests - 1 };
        const began = performance.now();
        const answer = await http?.infer(
          this.#model,
          sumBody(value, { sequence_id: id, ...flags }),
        );
        if (!answer) break;
        const { status } = answer;
        const got = status === 200 ? JSON.parse(answer.text).outputs[0].data[0] : errorOf(answer);
        const milliseconds = performance.now() - began;
        this.seen.push({ id, start: i === 0, status, got, sum, milliseconds });
        if (status !== 200) break;
      }
    }
  }
}

/** A request for a model that sums. */
export function sumBody(value: number, parameters: object): object {
  const inputs = [{ name: "IN", datatype: "FP32", shape: [1, 1], data: [value] }];
  return { inputs, outputs: [{ name: "OUT" }], parameters };
}
