import type { JobState } from "../protocol/job.ts";
import type { StartPhase } from "../serving/running-version.ts";
import type { Redis } from "../redis/connection.ts";
import type { TracedAttempt } from "./job-traces.ts";
import { names } from "./names.ts";

/** What processes that share a pool tell each other at once. Whoever misses a word finds its state in Redis later. */
export type PoolEvent =
  /** Nobody waits for this request any more. */
  | { readonly type: "cancel"; readonly envelope: string; readonly index: number }
  /** The client of this request has read its replies up to and with that number. */
  | {
      readonly type: "read";
      readonly envelope: string;
      readonly index: number;
      readonly number: number;
    }
  /** A version has been started for the first time, or could not be. */
  | { readonly type: "opened"; readonly version: string }
  /** A gateway sends no more requests to this version. */
  | { readonly type: "retired"; readonly version: string }
  /** A durable request has another state, perhaps its last. */
  | { readonly type: "job"; readonly id: string; readonly state: JobState }
  /** A pool worker has made an attempt at a durable request that is traced. */
  | ({ readonly type: "attempt" } & TracedAttempt)
  /** A durable request has ended whose receiver is to be told. */
  | { readonly type: "webhook"; readonly delivery: string }
  /** A gateway that waited for nothing waits for something. */
  | { readonly type: "demand" }
  /** A pool worker's process is there, and will take requests soon. */
  | { readonly type: "starting" }
  | StartProgress;

/** How a pool worker gets on with starting a version. */
export interface StartProgress {
  readonly type: "progress";
  readonly version: string;
  readonly phase: StartPhase | "ready";
  readonly fetchedBytes?: number;
  readonly totalBytes?: number;
}

type EventOf<Type extends PoolEvent["type"]> = Extract<PoolEvent, { type: Type }>;
type Listener = (event: PoolEvent) => void;

/** The channel of one pool, as one process hears and uses it. */
export class PoolChannel {
  readonly #channel: string;
  readonly #commands: Redis;
  readonly #listeners = new Map<PoolEvent["type"], Set<Listener>>();

  private constructor(pool: string, commands: Redis) {
    this.#channel = names.poolChannel(pool);
    this.#commands = commands;
  }

  /** Resolves when every later event will be heard. */
  static async open(pool: string, commands: Redis, subscriber: Redis): Promise<PoolChannel> {
    const channel = new PoolChannel(pool, commands);
    subscriber.on("message", (name: string, text: string) => {
      if (name === channel.#channel) channel.#hear(text);
    });
    await subscriber.subscribe(channel.#channel);
    return channel;
  }

  /** Never rejects: an event that cannot be sent is one that everybody misses. */
  publish(event: PoolEvent): void {
    this.#commands.publish(this.#channel, JSON.stringify(event)).catch(() => {});
  }

  /** @returns takes the listener back */
  on<Type extends PoolEvent["type"]>(
    type: Type,
    listener: (event: EventOf<Type>) => void,
  ): () => void {
    let listeners = this.#listeners.get(type);
    if (!listeners) this.#listeners.set(type, (listeners = new Set()));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only events of its type are handed to it
    const heard = listener as Listener;
    listeners.add(heard);
    return () => void listeners.delete(heard);
  }

  #hear(text: string): void {
    const event: PoolEvent = JSON.parse(text);
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event);
  }
}
